// kafkajs: node produce.js BROKER TOPIC CODEC COUNT. Records are those of records.py.
const { Kafka, logLevel, Partitioners } = require('kafkajs')
const { TYPES, ready } = require('./codecs')

async function main([broker, topic, codec, count]) {
  await ready()
  const kafka = new Kafka({ clientId: 'kafkajs', brokers: [broker], logLevel: logLevel.ERROR })
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  const messages = [...Array(Number(count)).keys()].map(i => ({
    partition: 0,
    key: `k${i}`,
    value: `${codec}-${i}-${'x'.repeat(i)}`,
    headers: { h: `h${i}` },
  }))
  await producer.send({ topic, acks: -1, compression: TYPES[codec], messages })
  await producer.disconnect()
}

main(process.argv.slice(2)).catch(error => {
  console.error(error)
  process.exit(1)
})

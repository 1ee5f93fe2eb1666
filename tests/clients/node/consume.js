// kafkajs: node consume.js BROKER TOPIC COUNT. Prints one JSON line a record of partition 0.
//
// Its public consumer works in groups alone. This reads an assigned partition with what that consumer is made
// of: the cluster, its fetch, and the batch class that decides where to go on, behind holes too.
const Batch = require('kafkajs/src/consumer/batch')
const Cluster = require('kafkajs/src/cluster')
const LoggerConsole = require('kafkajs/src/loggers/console')
const { createLogger, LEVELS } = require('kafkajs/src/loggers')
const socketFactory = require('kafkajs/src/network/socketFactory')
const { ready } = require('./codecs')

const DEADLINE_MS = 60000

async function main([broker, topic, count]) {
  await ready()
  const cluster = new Cluster({
    logger: createLogger({ level: LEVELS.ERROR, logCreator: LoggerConsole }),
    socketFactory: socketFactory(),
    brokers: [broker],
    clientId: 'kafkajs',
    connectionTimeout: 10000,
    metadataMaxAge: 300000,
    enforceRequestTimeout: true,
  })
  await cluster.connect()
  await cluster.addTargetTopic(topic)
  const leaders = cluster.findLeaderForPartitions(topic, [0])
  const leader = await cluster.findBroker({ nodeId: Object.keys(leaders)[0] })
  const deadline = Date.now() + DEADLINE_MS
  for (let next = 0n, seen = 0; seen < Number(count); ) {
    if (Date.now() > deadline) throw new Error(`${seen} of ${count} records, at offset ${next}`)
    const partitions = [{ partition: 0, fetchOffset: next.toString(), maxBytes: 1048576 }]
    const { responses } = await leader.fetch({ maxWaitTime: 500, topics: [{ topic, partitions }] })
    const batch = new Batch(topic, next.toString(), responses[0].partitions[0])
    for (const m of batch.messages) {
      const header = m.headers.h ? m.headers.h.toString() : ''
      const line = { offset: Number(m.offset), key: m.key.toString(), value: m.value.toString(), header }
      console.log(JSON.stringify(line))
      seen++
    }
    if (batch.rawMessages.length > 0) next = BigInt(batch.lastOffset()) + 1n
  }
  await cluster.disconnect()
}

main(process.argv.slice(2)).catch(error => {
  console.error(error)
  process.exit(1)
})

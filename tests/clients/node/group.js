// kafkajs: node group.js BROKER TOPIC GROUP SESSION-MS. A member of a group until SIGTERM, upon which it
// leaves. Prints what it gets and what it reads, as test_groups.py says.
const { Kafka, logLevel } = require('kafkajs')

async function main([broker, topic, group, sessionMs]) {
  const kafka = new Kafka({ clientId: 'kafkajs', brokers: [broker], logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 100, maxRetryTime: 300, retries: 1000 } })
  const consumer = kafka.consumer({ groupId: group, sessionTimeout: Number(sessionMs), heartbeatInterval: 200,
    rebalanceTimeout: 10000, maxWaitTimeInMs: 200 })
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) =>
    console.log(JSON.stringify({ assigned: payload.memberAssignment[topic] || [] })))
  process.on('SIGTERM', async () => {
    await consumer.disconnect()
    process.exit(0)
  })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await consumer.run({
    autoCommitThreshold: 1,
    eachMessage: async ({ partition, message }) =>
      console.log(JSON.stringify({ partition, offset: Number(message.offset), value: message.value.toString() })),
  })
}

main(process.argv.slice(2)).catch(error => {
  console.error(error)
  process.exit(1)
})

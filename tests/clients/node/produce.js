// kafkajs: node produce.js BROKER TOPIC CODEC COUNT. Records are those of records.py.
const { Kafka, CompressionTypes, CompressionCodecs, logLevel, Partitioners } = require('kafkajs')
const SnappyCodec = require('kafkajs-snappy')
const lz4 = require('lz4js')
const zstd = require('@bokuweb/zstd-wasm')

CompressionCodecs[CompressionTypes.Snappy] = SnappyCodec
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: async encoder => Buffer.from(lz4.compress(encoder.buffer)),
  decompress: async buffer => Buffer.from(lz4.decompress(buffer)),
})
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async encoder => Buffer.from(zstd.compress(encoder.buffer)),
  decompress: async buffer => Buffer.from(zstd.decompress(buffer)),
})

const TYPES = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
}

async function main([broker, topic, codec, count]) {
  await zstd.init()
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

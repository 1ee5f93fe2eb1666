// Produces to and consumes from one partition with franz-go or sarama, for the tests of tests/clients.
//
//	clients franz|sarama produce BROKER TOPIC CODEC COUNT   records as in wire.py: key, value and header by number
//	clients franz|sarama consume BROKER TOPIC COUNT         prints one JSON line a record
//	clients sarama group VERSION BROKER TOPIC GROUP SESSION-MS   is a member of a group, see group.go
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
)

const deadline = 60 * time.Second

type record struct {
	Offset int64  `json:"offset"`
	Key    string `json:"key"`
	Value  string `json:"value"`
	Header string `json:"header"`
}

func key(i int) string    { return fmt.Sprintf("k%d", i) }
func header(i int) string { return fmt.Sprintf("h%d", i) }
func value(codec string, i int) string {
	return fmt.Sprintf("%s-%d-%s", codec, i, strings.Repeat("x", i))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func print(r record) { check(json.NewEncoder(os.Stdout).Encode(r)) }

func franzProduce(broker, topic, codec string, count int) {
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.ProducerBatchCompression(codecs[codec]),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(10*time.Millisecond))
	check(err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	var records []*kgo.Record
	for i := range count {
		records = append(records, &kgo.Record{Topic: topic, Key: []byte(key(i)),
			Value: []byte(value(codec, i)), Headers: []kgo.RecordHeader{{Key: "h", Value: []byte(header(i))}}})
	}
	check(client.ProduceSync(ctx, records...).FirstErr())
}

func franzConsume(broker, topic string, count int) {
	client, err := kgo.NewClient(kgo.SeedBrokers(broker),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	check(err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	for seen := 0; seen < count; {
		fetches := client.PollFetches(ctx)
		for _, e := range fetches.Errors() {
			check(e.Err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			seen++
			h := ""
			for _, one := range r.Headers {
				h = string(one.Value)
			}
			print(record{r.Offset, string(r.Key), string(r.Value), h})
		})
	}
}

func saramaConfig() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.V4_0_0_0
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Partitioner = sarama.NewManualPartitioner
	return config
}

func saramaProduce(broker, topic, codec string, count int) {
	config := saramaConfig()
	config.Producer.Compression = map[string]sarama.CompressionCodec{
		"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
		"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
	}[codec]
	producer, err := sarama.NewSyncProducer([]string{broker}, config)
	check(err)
	var messages []*sarama.ProducerMessage
	for i := range count {
		messages = append(messages, &sarama.ProducerMessage{Topic: topic, Key: sarama.StringEncoder(key(i)),
			Value:   sarama.StringEncoder(value(codec, i)),
			Headers: []sarama.RecordHeader{{Key: []byte("h"), Value: []byte(header(i))}}})
	}
	check(producer.SendMessages(messages))
	check(producer.Close())
}

func saramaConsume(broker, topic string, count int) {
	consumer, err := sarama.NewConsumer([]string{broker}, saramaConfig())
	check(err)
	defer consumer.Close()
	partition, err := consumer.ConsumePartition(topic, 0, sarama.OffsetOldest)
	check(err)
	defer partition.Close()
	timeout := time.After(deadline)
	for seen := 0; seen < count; seen++ {
		select {
		case m := <-partition.Messages():
			h := ""
			for _, one := range m.Headers {
				h = string(one.Value)
			}
			print(record{m.Offset, string(m.Key), string(m.Value), h})
		case <-timeout:
			check(fmt.Errorf("%d of %d records in %s", seen, count, deadline))
		}
	}
}

func main() {
	args := os.Args[1:]
	count, err := strconv.Atoi(args[len(args)-1])
	check(err)
	switch args[0] + " " + args[1] {
	case "franz produce":
		franzProduce(args[2], args[3], args[4], count)
	case "franz consume":
		franzConsume(args[2], args[3], count)
	case "sarama produce":
		saramaProduce(args[2], args[3], args[4], count)
	case "sarama group":
		saramaGroup(args[3], args[4], args[5], args[2], count)
	case "sarama consume":
		saramaConsume(args[2], args[3], count)
	default:
		check(fmt.Errorf("unknown command: %s %s", args[0], args[1]))
	}
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/IBM/sarama"
)

// A member tells what it gets and what it reads, in the lines that test_groups.py reads.
type member struct{}

func tell(event map[string]any) { check(json.NewEncoder(os.Stdout).Encode(event)) }

func (member) Setup(session sarama.ConsumerGroupSession) error {
	partitions := []int32{}
	for _, claimed := range session.Claims() {
		partitions = append(partitions, claimed...)
	}
	tell(map[string]any{"assigned": partitions})
	return nil
}

func (member) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		tell(map[string]any{"partition": message.Partition, "offset": message.Offset, "value": string(message.Value)})
		session.MarkMessage(message, "")
		session.Commit()
	}
	return nil
}

// saramaGroup is a member until SIGTERM, upon which it leaves.
func saramaGroup(broker, topic, group, version string, sessionMs int) {
	config := saramaConfig()
	var err error
	config.Version, err = sarama.ParseKafkaVersion(version)
	check(err)
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Group.Session.Timeout = time.Duration(sessionMs) * time.Millisecond
	config.Consumer.Group.Heartbeat.Interval = 200 * time.Millisecond
	config.Consumer.Group.Rebalance.Retry.Backoff = 200 * time.Millisecond
	config.Metadata.Retry.Backoff = 100 * time.Millisecond
	config.Metadata.Retry.Max = 100
	found, err := sarama.NewConsumerGroup([]string{broker}, group, config)
	check(err)
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	for ctx.Err() == nil {
		// It ends with each generation, and with what it does not try again by itself.
		if err := found.Consume(ctx, []string{topic}, member{}); errors.Is(err, sarama.ErrClosedConsumerGroup) {
			break
		}
	}
	check(found.Close())
}

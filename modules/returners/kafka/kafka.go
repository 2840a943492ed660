//go:build returners.kafka || interop

// Package kafka is Salt's returner "kafka": returns as messages of a Kafka topic. Salt's source: salt/returners/kafka_return.py.
//
// The client library takes half a minute to compile, so that only builds with the tag returners.kafka have this package at all.
package kafka

import (
	"context"
	"fmt"
	"hash/crc32"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/returners"
)

func init() { returners.Register(Module) }

// delivery is how long a message may take to be delivered; stock's client gives up after the same time.
const delivery = 5 * time.Minute

// most is the maximum number of messages that may wait at the same time. While the brokers are away each waits for
// minutes, with its own client.
const most = 100

var waiting atomic.Int64

// Module returns the returner "kafka".
func Module() *modules.Module {
	return &modules.Module{Name: "kafka_return", Virtual: "kafka", Doc: "Send returns to a Kafka topic.", Funcs: []modules.Def{
		returners.Def("returner", "Send a return: as JSON, with the text that Python has for it as the key.", returner, "ret"),
	}}
}

// returner sends one message. As in stock, one that cannot be sent is an error of the log.
func returner(ctx context.Context, c *modules.Call) (any, error) {
	ret, err := returners.Return(c)
	if err != nil {
		return nil, err
	}
	o := returners.Options(c, "returner.kafka", nil, returners.Attrs("bootstrap", "topic"), nil)
	topic := o["topic"]
	if !pytext.Truth(topic) {
		c.Logger().Error("Unable to find kafka returner config option: topic")
		return nil, nil
	}
	if !pytext.Truth(o["bootstrap"]) {
		c.Logger().Error("Unable to find kafka returner config option: bootstrap")
		return nil, nil
	}
	text, err := returners.JSON(ret)
	if err != nil {
		return nil, err
	}
	if err := send(ctx, c.Logger(), servers(o["bootstrap"]), &kgo.Record{Topic: pytext.Str(topic), Key: []byte(pytext.Repr(ret)), Value: []byte(text)}); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		c.Logger().Error("Message delivery failed", "topic", pytext.Str(topic), "err", err)
	}
	return nil, nil
}

// servers returns the addresses of the first servers: a list, or the parts of a text between commas.
func servers(v any) []string {
	list, ok := v.([]any)
	if !ok {
		return strings.Split(pytext.Str(v), ",")
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = pytext.Str(s)
	}
	return out
}

// send delivers one message. The partition follows from the key by the rule of stock's client.
func send(ctx context.Context, log *slog.Logger, servers []string, r *kgo.Record) error {
	defer waiting.Add(-1)
	if waiting.Add(1) > most {
		return fmt.Errorf("%d messages wait already", most)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(servers...), kgo.ClientID("salt"), kgo.RecordDeliveryTimeout(delivery),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.DisableClientMetrics(), kgo.DisableIdempotentWrite(), kgo.AllowAutoTopicCreation(),
		kgo.RecordPartitioner(kgo.BasicConsistentPartitioner(byKey)))
	if err != nil {
		return fmt.Errorf("cannot use the Kafka servers: %w", err)
	}
	defer client.Close()
	sent, err := client.ProduceSync(ctx, r).First()
	if err == nil {
		log.Debug("Message delivered", "topic", sent.Topic, "partition", sent.Partition)
	}
	return err
}

// byKey returns a function that chooses the partition by the record's key.
func byKey(string) func(*kgo.Record, int) int {
	return func(r *kgo.Record, n int) int { return int(uint64(crc32.ChecksumIEEE(r.Key)) % uint64(n)) }
}

// Command parley is the command with the adapters of this module: RabbitMQ, NATS, Kafka and S3, beside those that it has anyway.
//
//	go -C adapters build -o parley ./parley
package main

import (
	"os"

	"github.com/parley-broker/parley/adapters/kafka"
	"github.com/parley-broker/parley/adapters/nats"
	"github.com/parley-broker/parley/adapters/rabbitmq"
	"github.com/parley-broker/parley/adapters/s3"
	"github.com/parley-broker/parley/flow/command"
)

func main() { os.Exit(command.Run(os.Args[1:], kafka.Kind, nats.Kind, rabbitmq.Kind, s3.Kind)) }

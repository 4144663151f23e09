// Package pb has the messages of the protocol between brokers as protoc-gen-go writes them from wire.proto. They are what came
// from outside: package wire checks them and turns them into the shapes of the broker.
//
// To generate them, put protoc, protoc-gen-go 1.36 and protoc-gen-go-grpc 1.6 in the path.
package pb

//go:generate protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative wire.proto

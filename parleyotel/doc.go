// Package parleyotel carries OpenTelemetry traces through conversations: one trace shows the send, the time that the
// message waited, and the work of its reader.
//
// A program that sends calls [TraceSends] once. From then on each [parley.Send] under a span is a span of its own, and
// its message carries the trace. A program that receives wraps the handler of its consumer in [Handler]. Programs that
// do not import this package do not depend on OpenTelemetry.
//
// A batch ([parley.SendBatch]) is one span, whose trace each of its messages carries. Messages of [parley.SendToAll] carry none.
package parleyotel

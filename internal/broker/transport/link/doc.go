// Package link carries batches and fragments between servers: a [Link] dials an address and is a transport.Deliverer, a [Server] listens
// and hands what comes to a transport.Deliverer of its own.
//
// Terms. A connection is a socket with one stream of frames on it, in the roles that docs/reference/protocol.md gives the two ends: the
// dialling end asks, the accepting end answers. Servers that speak in both directions have two. A question is a batch or a fragment, from
// when it is sent until its answer is there. The window is how many bytes of questions the accepting end lets be open at once.
//
// Owner of the truth: neither end of a link. A Link never makes up a result: what it returns has come as the answer to just this question,
// over the connection on which it was asked, and has passed the checks of package wire. Any other event (a cut, a stall, a peer that speaks
// nonsense, a closed Link) is an error, and the outcome is unknown.
//
// Flow control. The dialling end asks only as much as the window allows, and lets large messages have half of it; so batches find
// room beside them, and on the stream each waits behind at most one fragment. The accepting end holds it to that, and so knows how
// much memory its peers can take.
//
// Dead peers. Each end reads something every few seconds, because the accepting end pings; a socket on which nothing came or went for
// [Config.DeadAfter] is closed by the end that notices.
package link

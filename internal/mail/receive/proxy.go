package receive

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"
)

// proxyTimeout bounds how long a proxy may take for its header.
const proxyTimeout = 10 * time.Second

// proxySignature begins a header of version 2 of the PROXY protocol.
var proxySignature = []byte("\r\n\r\n\x00\r\nQUIT\n")

var errProxyHeader = errors.New("not a header of the PROXY protocol")

// readProxyHeader takes the addresses of a connection from the header that its proxy sends first.
func (c *connection) readProxyHeader() error {
	_ = c.socket.SetReadDeadline(time.Now().Add(proxyTimeout))
	peer, err := readProxyHeader(c.socket)
	if err != nil {
		return err
	}
	if peer.IsValid() {
		c.peer = peer
	}
	return nil
}

// readProxyHeader reads a header of version 1 or 2, and no byte behind it. A header that names no addresses, as proxies send it for
// themselves, gives none.
func readProxyHeader(r io.Reader) (netip.AddrPort, error) {
	begin := make([]byte, 16) // shorter than any header
	if _, err := io.ReadFull(r, begin[:13]); err != nil {
		return netip.AddrPort{}, fmt.Errorf("%w: %w", errProxyHeader, err)
	}
	if bytes.HasPrefix(begin, proxySignature) {
		if _, err := io.ReadFull(r, begin[13:]); err != nil {
			return netip.AddrPort{}, fmt.Errorf("%w: %w", errProxyHeader, err)
		}
		return readProxyVersion2(r, begin)
	}
	line := begin[:13]
	for !bytes.HasSuffix(line, []byte("\r\n")) {
		var next [1]byte
		if _, err := io.ReadFull(r, next[:]); err != nil || len(line) >= 107 {
			return netip.AddrPort{}, errProxyHeader
		}
		line = append(line, next[0])
	}
	words := strings.Split(strings.TrimSuffix(string(line), "\r\n"), " ")
	switch {
	case words[0] != "PROXY" || len(words) < 2:
		return netip.AddrPort{}, errProxyHeader
	case words[1] == "UNKNOWN":
		return netip.AddrPort{}, nil
	case len(words) != 6 || words[1] != "TCP4" && words[1] != "TCP6":
		return netip.AddrPort{}, errProxyHeader
	}
	ip, err := netip.ParseAddr(words[2])
	if err != nil || ip.Is4() != (words[1] == "TCP4") || ip.Zone() != "" {
		return netip.AddrPort{}, errProxyHeader
	}
	peer, err := netip.ParseAddrPort(netip.AddrPortFrom(ip, 0).Addr().String() + ":" + words[4])
	if ip.Is6() {
		peer, err = netip.ParseAddrPort("[" + ip.String() + "]:" + words[4])
	}
	if err != nil {
		return netip.AddrPort{}, errProxyHeader
	}
	return netip.AddrPortFrom(peer.Addr().Unmap(), peer.Port()), nil
}

func readProxyVersion2(r io.Reader, begin []byte) (netip.AddrPort, error) {
	command, family := begin[12], begin[13]
	rest := make([]byte, binary.BigEndian.Uint16(begin[14:]))
	if _, err := io.ReadFull(r, rest); err != nil || command>>4 != 2 || command&0xf > 1 {
		return netip.AddrPort{}, errProxyHeader
	}
	isLocal := command&0xf == 0
	switch {
	case isLocal:
		return netip.AddrPort{}, nil
	case family == 0x11 && len(rest) >= 12:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(rest)), binary.BigEndian.Uint16(rest[8:])), nil
	case family == 0x21 && len(rest) >= 36:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(rest)).Unmap(), binary.BigEndian.Uint16(rest[32:])), nil
	}
	return netip.AddrPort{}, errProxyHeader
}

package webhook

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"
)

// ErrNotAllowed is the error of definitions that name an address which the operator does not allow.
var ErrNotAllowed = errors.New("not allowed by the operator of this daemon")

// Permission lists the addresses that the operator of a daemon lets definitions in the database name. The zero value allows none.
type Permission struct{ prefixes []prefix }

// prefix is the beginning of the addresses that are allowed. Without a host it is for all hosts with public addresses; a host that
// is named may be anywhere.
type prefix struct {
	scheme, host, path string
}

// ParsePermission reads prefixes of addresses: a scheme and a host, with a port and a path if need be, such as
// https://shop.example.com/in; or https://* for all hosts that are not in a private network.
func ParsePermission(prefixes []string) (Permission, error) {
	var p Permission
	for _, text := range prefixes {
		u, err := url.Parse(text)
		if err != nil {
			return Permission{}, fmt.Errorf("read the allowed address %q: %w", text, err)
		}
		if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
			strings.Contains(u.Host, "*") && u.Host != "*" {
			return Permission{}, fmt.Errorf("allowed address %q: write http:// or https://, a host or *, and a path if need be", text)
		}
		host := hostAndPort(u)
		if u.Host == "*" {
			host = ""
		}
		p.prefixes = append(p.prefixes, prefix{scheme: u.Scheme, host: host, path: strings.TrimSuffix(u.Path, "/")})
	}
	return p, nil
}

// check reads an address. It reports whether its host is named by the operator; otherwise only public addresses may be called.
func (p Permission) check(text string) (u *url.URL, isNamed bool, err error) {
	u, err = url.Parse(text)
	if err != nil {
		// The error would show the address, and with it what may be secret in it.
		return nil, false, errors.New("the web address cannot be read")
	}
	isAllowed := false
	for _, prefix := range p.prefixes {
		if prefix.covers(u) {
			isAllowed = true
			isNamed = isNamed || prefix.host != ""
		}
	}
	if !isAllowed {
		return nil, false, fmt.Errorf("address %s://%s%s is %w; allow it with parley serve --allow-webhook",
			u.Scheme, u.Host, u.Path, ErrNotAllowed)
	}
	return u, isNamed, nil
}

func (p prefix) covers(u *url.URL) bool {
	if u.Scheme != p.scheme || u.User != nil || p.host != "" && p.host != hostAndPort(u) {
		return false
	}
	if p.path == "" {
		return true
	}
	// A path that goes up again is not below anything.
	clean := path.Clean("/" + u.Path)
	return clean == strings.TrimSuffix(u.Path, "/") && (clean == p.path || strings.HasPrefix(clean, p.path+"/"))
}

func hostAndPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return strings.ToLower(u.Hostname()) + ":" + port
}

package web_test

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestOnlyCallersAreHeard(t *testing.T) {
	t.Parallel()
	basic := func(user, password string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	}
	for name, c := range map[string]struct {
		settings string
		headers  []string
		status   int
	}{
		"no token":                   {`{"authentication": "bearer"}`, nil, 401},
		"an empty token":             {`{"authentication": "bearer"}`, []string{"Authorization", "Bearer "}, 401},
		"a wrong token":              {`{"authentication": "bearer"}`, []string{"Authorization", "Bearer open sesam"}, 401},
		"the token":                  {`{"authentication": "bearer"}`, []string{"Authorization", "bearer open sesame"}, 202},
		"the token as basic":         {`{"authentication": "bearer"}`, []string{"Authorization", "Basic open sesame"}, 401},
		"one of two tokens":          {`{"authentication": "bearer", "callers": {"a": ["token", "other"]}}`, []string{"Authorization", "Bearer another one"}, 202},
		"a header of its own":        {`{"authentication": "bearer", "bearer_header": "X-Api-Key"}`, []string{"X-Api-Key", "open sesame"}, 202},
		"nothing in it":              {`{"authentication": "bearer", "bearer_header": "X-Api-Key"}`, []string{"X-Api-Key", ""}, 401},
		"a user":                     {`{"authentication": "basic", "callers": {"shop": "password"}}`, []string{"Authorization", basic("shop", "pass:word")}, 202},
		"another user":               {`{"authentication": "basic", "callers": {"shop": "password"}}`, []string{"Authorization", basic("erp", "pass:word")}, 401},
		"a wrong password":           {`{"authentication": "basic", "callers": {"shop": "password"}}`, []string{"Authorization", basic("shop", "pass")}, 401},
		"the password of another":    {`{"authentication": "basic", "callers": {"shop": "password", "erp": "token"}}`, []string{"Authorization", basic("erp", "pass:word")}, 401},
		"a secret that is not there": {`{"authentication": "bearer", "callers": {"a": "none"}}`, []string{"Authorization", "Bearer "}, 503},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := openDoor(t, c.settings)
			r := d.post("a secret body", c.headers...)
			d.want(r, c.status)
			if c.status == 401 && r.header.Get("WWW-Authenticate") == "" {
				t.Error("the answer says no way in")
			}
			if taken := len(d.in.Bodies()); taken != map[int]int{202: 1}[c.status] {
				t.Errorf("%d requests were taken", taken)
			}
			for _, secret := range append([]string{"a secret body"}, keys["token"], keys["password"]) {
				if strings.Contains(d.log.String(), secret) {
					t.Errorf("the log shows %q", secret)
				}
			}
		})
	}
}

func sign(key, text string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))
}

func TestASignedRequestIsTakenOnceItFits(t *testing.T) {
	t.Parallel()
	const body = `{"order": 1}`
	now := strconv.FormatInt(time.Now().Unix(), 10)
	old := strconv.FormatInt(time.Now().Add(-time.Hour).Unix(), 10)
	timed := `{"authentication": "hmac", "hmac": {"header": "Sig", "prefix": "v1=", "timestamp_prefix": "t=", "signed": "{timestamp}.{body}"}}`
	key := keys["key"]
	for name, c := range map[string]struct {
		settings string
		headers  []string
		status   int
	}{
		"a signature":            {`{"authentication": "hmac"}`, []string{"X-Signature-256", "sha256=" + sign(key, body)}, 202},
		"none":                   {`{"authentication": "hmac"}`, nil, 401},
		"without its prefix":     {`{"authentication": "hmac"}`, []string{"X-Signature-256", sign(key, body)}, 401},
		"of another body":        {`{"authentication": "hmac"}`, []string{"X-Signature-256", "sha256=" + sign(key, body+" ")}, 401},
		"by another key":         {`{"authentication": "hmac"}`, []string{"X-Signature-256", "sha256=" + sign("x", body)}, 401},
		"cut off":                {`{"authentication": "hmac"}`, []string{"X-Signature-256", "sha256=" + sign(key, body)[:32]}, 401},
		"empty":                  {`{"authentication": "hmac"}`, []string{"X-Signature-256", "sha256="}, 401},
		"with a time":            {timed, []string{"Sig", "t=" + now + ",v1=00,v1=" + sign(key, now+"."+body)}, 202},
		"too old":                {timed, []string{"Sig", "t=" + old + ",v1=" + sign(key, old+"."+body)}, 401},
		"old with another time":  {timed, []string{"Sig", "t=" + now + ",v1=" + sign(key, old+"."+body)}, 401},
		"without a time":         {timed, []string{"Sig", "v1=" + sign(key, "."+body)}, 401},
		"of the second of two":   {`{"authentication": "hmac", "callers": {"a": ["token", "key"]}}`, []string{"X-Signature-256", "sha256=" + sign(key, body)}, 202},
		"with the id in it":      {`{"authentication": "hmac", "hmac": {"signed": "{header:Id}.{body}"}}`, []string{"Id", "7", "X-Signature-256", "sha256=" + sign(key, "7."+body)}, 202},
		"with the id of another": {`{"authentication": "hmac", "hmac": {"signed": "{header:Id}.{body}"}}`, []string{"Id", "8", "X-Signature-256", "sha256=" + sign(key, "7."+body)}, 401},
		// A thief who has seen a request may not move the begin of its body into the id.
		"with an id that ends in the body": {`{"authentication": "hmac", "hmac": {"signed": "{header:Id}.{body}"}}`, []string{"Id", "7.1", "X-Signature-256", "sha256=" + sign(key, "7.1."+body)}, 401},
		"with a body that ends in the id":  {`{"authentication": "hmac", "hmac": {"signed": "{body}--{header:Id}"}}`, []string{"Id", "1-7", "X-Signature-256", "sha256=" + sign(key, body+"--1-7")}, 401},
		"with a dash that ends nothing":    {`{"authentication": "hmac", "hmac": {"signed": "{header:Id}.{body}"}}`, []string{"Id", "1-7", "X-Signature-256", "sha256=" + sign(key, "1-7."+body)}, 202},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := openDoor(t, c.settings)
			d.want(d.post(body, c.headers...), c.status)
			if taken := len(d.in.Bodies()); taken != map[int]int{202: 1}[c.status] {
				t.Errorf("%d requests were taken", taken)
			}
		})
	}
}

// The body decides who has sent a request, and is kept for that: but not the body of a client that shows no signature.
func TestABodyWithoutASignatureIsNotRead(t *testing.T) {
	t.Parallel()
	d := openDoor(t, `{"authentication": "hmac", "read_timeout": "200 milliseconds"}`)
	conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(d.address, "http://"), "/orders"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /orders HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nabc"); err != nil {
		t.Fatal(err)
	}
	status, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.HasPrefix(status, "HTTP/1.1 401 ") {
		t.Errorf("the answer is %q, %v", status, err)
	}
}

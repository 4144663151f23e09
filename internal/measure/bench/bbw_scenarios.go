package bench

import (
	"bytes"
	"fmt"
)

// BBWScenario is a scenario of BizTalk's wizard.
type BBWScenario string

// The scenarios: one hop through the message box, or two with an orchestration between them.
const (
	BBWMessaging     BBWScenario = "bbw-messaging"
	BBWOrchestration BBWScenario = "bbw-orchestration"
)

// The names of the hosts, as the original has them.
const (
	bbwReceiveHost = "BBW_RxHost"
	bbwProcessHost = "BBW_PxHost"
	bbwSendHost    = "BBW_TxHost"
)

// bbwCopies is how many copies of the orchestration are deployed; the first alone is started.
const bbwCopies = 4

// mostConnections is how many an adapter takes.
const mostConnections = 64

// bbwDefinitions are the artefacts of the original under its names: tracking is on.
func bbwDefinitions(scenario BBWScenario, place HopPlace, role string) map[string]any {
	ofHost := map[string]any{"role": role}
	location := map[string]any{
		"receive_port": "BBW_Receive", "host": bbwReceiveHost, "adapter": "TCP", "address": place.Listen, "pipeline": "PassThruReceive",
		"settings": map[string]any{"max_connections": 1000},
	}
	port := map[string]any{
		"application": "BBW", "host": bbwSendHost, "adapter": "TCP", "address": place.Target, "pipeline": "PassThruTransmit",
		"retry_policy": "BBW_Retries", "settings": map[string]any{"connections": min(place.Workers, mostConnections)},
	}
	definitions := map[string]any{
		"application":      map[string]any{"BBW": map[string]any{"tracking": true}},
		"host":             map[string]any{bbwReceiveHost: ofHost, bbwSendHost: ofHost},
		"receive port":     map[string]any{"BBW_Receive": map[string]any{"application": "BBW"}},
		"receive location": map[string]any{"BBW_TcpIn": location},
		"send port":        map[string]any{"BBW_Send": port},
		"retry policy":     bbwRetries(0),
	}
	if scenario == BBWMessaging {
		port["filter"] = [][]map[string]any{{{"property": "ReceivePortName", "operator": "=", "value": "BBW_Receive"}}}
		return definitions
	}
	location["pipeline"] = "XMLReceive"
	definitions["host"].(map[string]any)[bbwProcessHost] = ofHost
	definitions["retry policy"] = bbwRetries(3)
	definitions["message type"] = map[string]any{orderType: map[string]any{"application": "BBW", "format": "xml"}}
	copies := map[string]any{}
	for number := range bbwCopies {
		state := "Bound"
		if number == 0 {
			state = "Started"
		}
		copies[fmt.Sprintf("BBW_Orchestration%d", number+1)] = bbwOrchestration(state)
	}
	definitions["orchestration"] = copies
	return definitions
}

// bbwRetries is the policy of the original: none for messaging, three for orchestrations.
func bbwRetries(count int) map[string]any {
	return map[string]any{"BBW_Retries": map[string]any{"count": count, "interval": "5 minutes"}}
}

// bbwOrchestration takes each message and sends it on.
func bbwOrchestration(state string) map[string]any {
	return map[string]any{
		"application": "BBW", "host": bbwProcessHost, "state": state, "messages": map[string]any{"order": orderType},
		"ports": map[string]any{"out": map[string]any{"send_port": "BBW_Send"}},
		"body": []map[string]any{
			{"receive": map[string]any{"message": "order", "activate": true}}, {"send": map[string]any{"message": "order", "port": "out"}},
		},
		"activations": []map[string]any{{
			"receive": "0", "filter": [][]map[string]any{{{"property": "MessageType", "operator": "=", "value": orderType}}},
		}},
	}
}

// charsetOriginal is that of the original's file.
const charsetOriginal = "utf-16"

// mark16 begins bodies of UTF-16 whose characters have the lower byte first.
var mark16 = []byte{0xff, 0xfe}

// checkBody reports what is wrong with a size and a charset of bodies.
func checkBody(size int, charset string) error {
	least := smallestBody
	switch charset {
	case charsetOriginal:
		least = inUTF16(len(bodyBegin) + bodyDigits + len(bodyMiddle) + len(bodyEnd))
		if size%2 != 0 {
			return fmt.Errorf("a size of %d bytes is none of %s", size, charset)
		}
	case "utf-8":
	default:
		return fmt.Errorf("charset %q is unknown: there are utf-16, utf-8", charset)
	}
	if size < least || size > 1<<20 {
		return fmt.Errorf("a size must be from %d to %d bytes", least, 1<<20)
	}
	return nil
}

// inUTF16 is the size of so many characters with a mark.
func inUTF16(characters int) int { return 2 * (1 + characters) }

// bodiesIn makes XML of so many bytes in a charset.
func bodiesIn(charset string, size int) func(number int64) []byte {
	if charset != charsetOriginal {
		return bodiesOf(size)
	}
	narrow := bodiesOf(size/2 - 1)
	return func(number int64) []byte {
		characters := narrow(number)
		body := append(make([]byte, 0, inUTF16(len(characters))), mark16...)
		for _, c := range characters {
			body = append(body, c, 0)
		}
		return body
	}
}

// numberIn reads the number of a body in any of the charsets: an engine may give one out in another than it came in.
func numberIn(body []byte) (int64, error) {
	if !bytes.HasPrefix(body, mark16) {
		return numberOf(body)
	}
	narrow := make([]byte, 0, len(body)/2)
	for i := len(mark16); i+1 < len(body) && body[i+1] == 0; i += 2 {
		narrow = append(narrow, body[i])
	}
	return numberOf(narrow)
}

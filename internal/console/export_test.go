package console

import (
	"net/url"
	"slices"
	"time"
)

// CheckedAgain gives a configuration in which a connection lives no longer than that.
func CheckedAgain(config Config, interval time.Duration) Config {
	config.recheckInterval = interval
	return config
}

// FilteredPaths gives the path of each list with each of its filters, and behind a place, whose value is given.
func FilteredPaths(value string) (paths []string) {
	for _, group := range listings {
		for _, one := range group {
			for _, f := range one.filters {
				paths = append(paths, one.path+"?"+url.Values{f.name: {value}}.Encode())
			}
			place := slices.Repeat([]string{value}, len(one.order))
			paths = append(paths, one.path+"?"+url.Values{afterField: {value}}.Encode(), one.path+"?"+url.Values{afterField: {encodeKey(place)}}.Encode())
		}
	}
	return paths
}

// PathsBehindAPlace gives the path of each list behind a place that its order may have.
func PathsBehindAPlace() (paths []string) {
	values := map[string]string{
		"text": "x", "bigint": "7", "integer": "7", "timestamptz": "2020-01-01 00:00:00+00", "uuid": "00000000-0000-0000-0000-000000000001",
	}
	for _, group := range listings {
		for _, one := range group {
			var place []string
			for _, part := range one.order {
				place = append(place, values[part.as])
			}
			paths = append(paths, one.path+"?"+url.Values{afterField: {encodeKey(place)}}.Encode())
		}
	}
	return paths
}

// ChangingPaths gives the paths of all lists to which something can be done.
func ChangingPaths() (paths []string) {
	for _, group := range listings {
		for _, one := range group {
			if len(one.actions) > 0 {
				paths = append(paths, one.path)
			}
		}
	}
	return paths
}

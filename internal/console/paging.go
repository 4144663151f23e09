package console

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// afterField is the part of an address that names the row behind which a page of a list begins. No filter has this name.
const afterField = "after"

// sorting is an expression of the order of a list. Its value is never null, and the values of all of them name one row: so a page begins
// where the one before ended, however the list has changed.
type sorting struct {
	expr         string
	as           string // its type
	isDescending bool
}

// paged says which part of a list a page shows: the address of the first page when it is another one, and that of the next.
type paged struct {
	First, Next string
}

// orderBy gives the order of the list in SQL.
func (l listing) orderBy() string {
	parts := make([]string, 0, len(l.order))
	for _, one := range l.order {
		part := one.expr
		if one.isDescending {
			part += " desc"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// places gives the expressions of the order as text, which name the place of a row.
func (l listing) places() []string {
	places := make([]string, 0, len(l.order))
	for _, one := range l.order {
		places = append(places, "("+one.expr+")::text")
	}
	return places
}

// placeIn gives the place behind which the page of an address begins, nil for the first page.
func (l listing) placeIn(given url.Values) ([]string, error) {
	text := given.Get(afterField)
	if text == "" {
		return nil, nil
	}
	var place []string
	if err := json.Unmarshal([]byte(text), &place); err != nil || len(place) != len(l.order) {
		return nil, refused{http.StatusBadRequest, "This address names no place of the list."}
	}
	return place, nil
}

// behind gives the condition for the rows behind a place, whose values are parameters from that number on. The first value bounds it as a
// whole, too: an index does not see that in the alternatives.
func (l listing) behind(first int) string {
	var alternatives, same []string
	bound := ""
	for i, one := range l.order {
		value := "$" + strconv.Itoa(first+i) + "::text::" + one.as
		compared := " > "
		if one.isDescending {
			compared = " < "
		}
		if i == 0 {
			bound = one.expr + strings.TrimRight(compared, " ") + "= " + value
		}
		alternatives = append(alternatives, strings.Join(append(same[:i:i], one.expr+compared+value), " and "))
		same = append(same, one.expr+" = "+value)
	}
	return bound + " and ((" + strings.Join(alternatives, ") or (") + "))"
}

// pagesOf gives the addresses of the pages beside one; last is the place of its last row, nil when no row is behind it. The filters stay.
func (l listing) pagesOf(given url.Values, last []string) paged {
	address := func(after []string) string {
		query := url.Values{}
		for _, f := range l.filters {
			if value := given.Get(f.name); value != "" {
				query.Set(f.name, value)
			}
		}
		if after != nil {
			query.Set(afterField, encodeKey(after))
		}
		if len(query) == 0 {
			return l.path
		}
		return l.path + "?" + query.Encode()
	}
	var pages paged
	if given.Get(afterField) != "" {
		pages.First = address(nil)
	}
	if last != nil {
		pages.Next = address(last)
	}
	return pages
}

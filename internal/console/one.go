package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/jackc/pgx/v5"
)

// actOnOne answers the buttons of a page about one row, which are those of a list: the parts of the path that are named are its key.
func (c *Console) actOnOne(l listing, parts ...string) handler {
	return func(w http.ResponseWriter, request *http.Request, s *session) error {
		one := l
		var key []string
		for _, part := range parts {
			value := request.PathValue(part)
			key = append(key, value)
			one.path += "/" + url.PathEscape(value)
		}
		request.PostForm.Set("key", encodeKey(key))
		request.PostForm.Del("all")
		return c.actOn(one)(w, request, s)
	}
}

// readAll reads rows whose columns have the names of the fields of T.
func readAll[T any](ctx context.Context, tx pgx.Tx, what, sql string, parameters ...any) ([]T, error) {
	rows, err := tx.Query(ctx, sql, parameters...)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[T])
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	return found, nil
}

// pathNumber gives the number of a path.
func pathNumber(request *http.Request, part string) (int64, error) {
	number, err := numberOf(request.PathValue(part))
	if err != nil {
		return 0, refused{http.StatusNotFound, "There is no such page."}
	}
	return number, nil
}

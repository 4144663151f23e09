package pgdb

import (
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"
)

// UUID is a conversation handle, the id of a conversation group, or the id of a message. Its zero value means none.
// It converts to and from any other [16]byte UUID type.
type UUID [16]byte

// ParseUUID reads a UUID as PostgreSQL and Service Broker write it: 32 hexadecimal digits in groups of 8, 4, 4, 4 and 12.
func ParseUUID(text string) (UUID, error) {
	var u UUID
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return u, fmt.Errorf("%q is not a UUID", text)
	}
	digits := text[:8] + text[9:13] + text[14:18] + text[19:23] + text[24:]
	if _, err := hex.Decode(u[:], []byte(digits)); err != nil {
		return UUID{}, fmt.Errorf("%q is not a UUID", text)
	}
	return u, nil
}

// IsZero reports whether u is no UUID at all.
func (u UUID) IsZero() bool { return u == UUID{} }

// String writes u as [ParseUUID] reads it.
func (u UUID) String() string {
	var text [36]byte
	hex.Encode(text[:8], u[:4])
	hex.Encode(text[9:13], u[4:6])
	hex.Encode(text[14:18], u[6:8])
	hex.Encode(text[19:23], u[8:10])
	hex.Encode(text[24:], u[10:])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return string(text[:])
}

// MarshalText makes JSON show a UUID as a string.
func (u UUID) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText is the reverse of MarshalText.
func (u *UUID) UnmarshalText(text []byte) (err error) {
	*u, err = ParseUUID(string(text))
	return err
}

// ScanUUID lets pgx read a column; NULL becomes the zero value.
func (u *UUID) ScanUUID(v pgtype.UUID) error {
	if u == nil {
		return errors.New("scan into a nil UUID")
	}
	*u = v.Bytes
	if !v.Valid {
		*u = UUID{}
	}
	return nil
}

// Value lets a parameter travel as text, as some query modes of pgx do; the zero value becomes NULL.
func (u UUID) Value() (driver.Value, error) {
	if u.IsZero() {
		return nil, nil
	}
	return u.String(), nil
}

// UUIDValue lets pgx send a parameter in binary; the zero value becomes NULL.
func (u UUID) UUIDValue() (pgtype.UUID, error) {
	return pgtype.UUID{Bytes: u, Valid: !u.IsZero()}, nil
}

// UUIDTexts writes UUIDs as parameters that every query mode of pgx can send; zero values become NULL.
func UUIDTexts(uuids []UUID) []*string {
	texts := make([]*string, len(uuids))
	for i, u := range uuids {
		if !u.IsZero() {
			text := u.String()
			texts[i] = &text
		}
	}
	return texts
}

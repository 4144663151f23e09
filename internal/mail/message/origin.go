package message

import "strings"

// originField is the field in which one of our nodes says to another of the same organization from where a message came.
const originField = OrganizationPrefix + "Origin"

// WithOrigin gives the header in which a message leaves for another of our nodes: it says there whether the message originates here.
func (h Header) WithOrigin(isOriginating bool) Header {
	origin := Incoming
	if isOriginating {
		origin = Originating
	}
	return append(h.Without(func(field Field) bool { return field.Is(originField) }), NewField(originField, origin))
}

// IsFromInside is whether one of our nodes says that somebody of ours wrote the message. It is asked of peers alone that may set such
// fields; one of them that says nothing may pass on anybody's mail.
func (h Header) IsFromInside() bool {
	return strings.EqualFold(h.Value(originField), Originating)
}

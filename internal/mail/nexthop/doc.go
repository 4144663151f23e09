// Package nexthop says to which hosts mail for a domain goes, in which order, and how well that is known.
//
// Terms. A [Host] is a mail exchanger with its addresses. An answer is secure when a validating resolver says that it was signed (the AD
// bit); only secure answers count for DANE. A [Resolver] asks the name servers of the machine or those it is given, and keeps answers for
// as long as they say, and that there is none for as long as the zone says.
//
// Sources: RFC 5321 section 5 (order, the implicit exchanger), RFC 7505 (a domain that takes no mail), RFC 2308 (negative answers),
// RFC 7672 and 6698 (TLSA), spec/hub-transport.md section 11.2.
package nexthop

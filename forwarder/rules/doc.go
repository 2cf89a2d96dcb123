// Package rules changes what the names of a route are answered with.
//
// A Set is all the rules of one route. What it answers by itself, Local gives
// before anybody looks into the cache: addresses of a hosts list, fixed answers,
// and "no such record" for types that are filtered. What it changes about the
// servers' answers happens in Over, between the cache and the servers: names are
// asked for under other names, and IPv6 addresses are made of IPv4 ones. So the
// cache holds what the clients get, and a hit costs no more than without rules.
//
// Rules hold for every client that asks for a name of the route, so that an
// answer may be shared by all of them. Whoever changes a Set must not go on with
// answers that were kept under another.
//
// The package starts no goroutine. Hosts can be replaced at any time; a Set
// never changes otherwise.
package rules

// Package subscribers knows which minion is behind each connection of the publish channel, which minions are connected
// to any master of a cluster, and how sign-ins of unknown minions take turns. Its Sender hands jobs to the connections,
// sealed under the keys of tenants.
//
//	connection opens ──► Identifier: probe to this connection alone ──► its minion returns it under its own key
//	                                                                              │
//	sign-in, request, presence frame of tcp ─────────────────────────────► Presence ◄── reports of peer masters
//
// Jobs with arguments are not sent to connections that may be another minion's: the minion fetches them, and FetchCache
// keeps the last ones at hand.
package subscribers

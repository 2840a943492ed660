// Package subscribers knows the minion behind each connection of the publish channel, and which minions are
// connected to any master of a cluster. It also queues sign-ins of unknown minions. Its Sender sends jobs to
// the connections, sealed under the keys of tenants.
//
//	connection opens ──► Identifier: probe to this connection alone ──► its minion returns it under its own key
//	                                                                              │
//	sign-in, request, presence frame of tcp ─────────────────────────────► Presence ◄── reports of peer masters
//
// Jobs with arguments are not sent to connections that may belong to another minion. The minion fetches them
// instead, and FetchCache holds the latest ones.
package subscribers

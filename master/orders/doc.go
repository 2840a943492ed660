// Package orders delivers orders: jobs that do not need their minions to be connected. An order has one
// delivery for each minion. Deliveries are stored in a store.Queue. The Deliverer sends each once, again only
// if the job cannot run twice, and determines its outcome.
//
//	            expired, cancelled                     ┌── returned, refused (by the minion's policy)
//	waiting ────────────────────────► undeliverable,   │
//	   │                              cancelled        │
//	   └── its minion answered a probe ──► sent ───────┼── cancelled, timed out
//	                                        │  ▲       │
//	                    status query, later │  │ again └── lost: the minion is silent for Options.LostAfter,
//	                                        └──┘               or does not know the job
//
// A job that is published while its minion does not listen is lost. So a delivery is sent only if the minion
// has just proved, by answering something published, that it receives this master's publishes. The Deliverer
// probes minions with pending deliveries, at growing intervals, and sooner when there is a reason (a sign-in, a
// new connection).
//
// In a cluster all masters see all deliveries. Each change is a compare-and-swap in the store, so one of them
// wins. The master to which a minion listens sends; the others check later whether anything is left.
//
// # Peers
//
// A peer (peer.go) is what this master knows of one minion. It decides when the minion is probed:
//
//	           something is pending
//	┌──────┐ ──────────────────────────► ┌─────────┐ ──┐ no answer: probe it again,
//	│ idle │                             │ probing │ ◄─┘ after a longer pause
//	└──────┘ ◄────────────────────────── └─────────┘
//	  ▲  │     it answers: [answered]      │     ▲
//	  │  │     it has no accepted key      │     │ something is pending that is
//	  │  │                                 │     │ not left to another master
//	  │  │            another master is    ▼     │
//	  │  │            to send to it      ┌──────────┐
//	  │  └─────────────────────────────► │ deferred │
//	  └───────────────────────────────── └──────────┘
//	            that master's time is over: [lookUp]
//	            it answers: [answered]
//
// Only in a cluster are peers deferred. The marks in brackets are for the next turn of Run, which removes them:
//
//	answered   The minion listens: claim and send its pending deliveries. It is idle then, unless it is silent.
//	lookUp     Read its deliveries. If one is pending, it is probing. If it was silent, query what it was sent.
//	signedIn   Set with lookUp. If it was sent something that is still open, it is silent, and probing.
//
// A peer has three facts in every state: when the minion last answered (heard, path), which saves the next
// probe for some seconds; how many of its deliveries are being queried (queries); and whether it is silent, so
// that its next answer triggers their query. A peer that is idle, without a mark, a query or a recent answer,
// is removed. In a cluster it stays while the minion is known to listen to this master (path). The number of
// recorded answers is limited (maxProofs).
//
// The package knows minions by id only. Wire is its interface to the network.
package orders

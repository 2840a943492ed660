// Package orders delivers orders: jobs that do not need their minions to be connected. An order has one
// delivery for each minion. Deliveries are kept in a store.Queue; the Deliverer sends each at most once, or
// again where that cannot make the job run twice, and finds out what became of it.
//
//	            expired, cancelled                     ┌── returned, refused (by the minion's policy)
//	waiting ────────────────────────► undeliverable,   │
//	   │                              cancelled        │
//	   └── its minion answered a probe ──► sent ───────┼── cancelled, timed out
//	                                        │  ▲       │
//	                    status query, later │  │ again └── lost: the minion is silent for Options.LostAfter,
//	                                        └──┘               or knows nothing of the job
//
// A job that is published while its minion does not listen is gone. So a delivery is sent only when the
// minion has just proved, by an answer to something published, that it hears this master: the Deliverer
// probes minions for which something waits, with growing pauses, and sooner when there is a reason to (a
// sign-in, a new connection).
//
// In a cluster all masters see all deliveries; each change is a compare-and-swap in the store, so one of
// them wins. The master that a minion listens to sends; the others look later whether something is left.
//
// # Peers
//
// When a minion is probed is decided by its peer (peer.go), which is what this master knows of one minion:
//
//	           something waits
//	┌──────┐ ──────────────────────────► ┌─────────┐ ──┐ no answer: probe it again,
//	│ idle │                             │ probing │ ◄─┘ after a longer pause
//	└──────┘ ◄────────────────────────── └─────────┘
//	  ▲  │     it answers: [answered]      │     ▲
//	  │  │     it has no accepted key      │     │ something waits that is
//	  │  │                                 │     │ not left to another master
//	  │  │            another master has   ▼     │
//	  │  │            it in hand         ┌──────────┐
//	  │  └─────────────────────────────► │ deferred │
//	  └───────────────────────────────── └──────────┘
//	            that one had its time: [lookUp]
//	            it answers: [answered]
//
// A peer is deferred in a cluster only. The marks in brackets are for the next turn of Run, which removes them:
//
//	answered   The minion listens: claim what waits for it, send it, and be idle unless it is silent.
//	lookUp     Read its deliveries. If one waits, it is probing. If it was silent, query what it was sent.
//	signedIn   Comes with lookUp. If it was sent something that is open, it is silent, and probing.
//
// Three things are known in every state: when the minion has last answered (heard, path), which saves the
// next probe for some seconds; how many of its deliveries are being queried (queries); and whether it is
// silent, so that its next answer is the time to query them. A peer that is idle, without a mark, a query
// or a fresh answer is removed. In a cluster it stays as long as the minion is known to listen to this
// master (path), and proofs are bounded (maxProofs).
//
// The package knows minions by their ids only. What it needs of the network is Wire.
package orders

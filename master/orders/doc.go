// Package orders delivers orders: jobs that do not need their minions to be connected. An order has one delivery for each
// minion. Deliveries are kept in a store.Queue; the Deliverer sends each at most once, or again where that cannot make the
// job run twice, and finds out what became of it.
//
//	            expired, cancelled                     ┌── returned, refused (by the minion's policy)
//	waiting ────────────────────────► undeliverable,   │
//	   │                              cancelled        │
//	   └── its minion answered a probe ──► sent ───────┼── cancelled, timed out
//	                                        │  ▲       │
//	                    status query, later │  │ again └── lost: the minion is silent for Options.LostAfter,
//	                                        └──┘               or knows nothing of the job
//
// A job that is published while its minion does not listen is gone. So a delivery is sent only when the minion has just
// proved, by an answer to something published, that it hears this master: the Deliverer probes minions for which something
// waits, with growing pauses, and sooner when there is a reason to (a sign-in, a new connection).
//
// In a cluster all masters see all deliveries; each change is a compare-and-swap in the store, so one of them wins. The master
// that a minion listens to sends; the others look later whether something is left to do.
//
// The package knows minions by their ids only. What it needs of the network is Wire.
package orders

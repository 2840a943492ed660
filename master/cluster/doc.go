// Package cluster is what several equal masters do together over one database, which is all that connects them. A
// master sees the others as Peers: Alone for a master without any, Several for one that shares a store.Shared. What the
// others tell, it gets as a Host. There is no leader: each change of something shared is a compare-and-swap in the
// database, so any master may do anything, and any of them may die.
//
// # Messages
//
// Messages are numbered by the database without gaps. Each master gets those of the others, each once and in one order;
// the messages are kept for ten minutes. A master that could not read one before it was deleted, or whose connection to
// the database failed, learns that it missed some: it reads secrets, keys and awaited returns again, asks who is
// connected, and tells its listeners of a gap.
//
//	master A                   database                     master B
//	    │                          │                            │
//	    │ publish {job, ids}       │                            │
//	    ├─────────────────────────►├───────────────────────────►│ sends the job to its minions; A has sent
//	    │ sends it to its minions  │                            │ nothing before the message is stored
//	    │                          │                            │
//	    │ a return arrives         │                            │
//	    │ return {jid, id, load}   │  in one transaction with   │
//	    ├─────────────────────────►│  the return, if it is the  │ publishes the event, ends its wait for it;
//	    │                          ├──────first of its minion──►│ reads a load of more than 4 KiB from the
//	    │ acknowledges the return  │                            │ store, if a caller awaits it
//	    │                          │                            │
//	    │ an order is placed       │                            │
//	    │ expect {ids, here}       │  in one transaction with   │
//	    ├─────────────────────────►├──────────the order────────►│ will deliver it if A does not
//	    │                          │                            │
//	    │ a key changes            │  in one transaction with   │
//	    ├─────────────────────────►├───────the record (keys)───►│ forgets the session of a lost key
//	    │ secret {name, version}   │                            │
//	    ├─────────────────────────►├───────with the secret─────►│ reads the secrets, dismisses minions without
//	    │                          │                            │ a key
//	    │                          │◄──listen {}────────────────┤ it has event listeners
//	    │ event {tag, data}        │                            │
//	    ├─────────────────────────►├───────────────────────────►│ relays it to its bus; event {missed} is a gap
//	    │                          │                            │
//	    │                          │◄──who {}───────────────────┤ does not know the minions of A
//	    │ present {full, up, down} │                            │
//	    ├─────────────────────────►├───────────────────────────►│ knows where they are connected
//
// # Leases
//
// A lease ends by itself, so that what a master held is free when it dies. A master that ends in order gives its own
// two back.
//
//	master/<name>    15 s, renewed every 2 s   this master is there. When it ends, the others forget its minions
//	listens/<name>   15 s, renewed every 2 s   it has event listeners: events are passed on
//	maintain         2 rounds of housekeeping  its holder deletes old messages, marks of requests and jobs
//
// # Secrets
//
// A Vault has the identity, the key of publishes and the root of session keys in the database, sealed, in versions. A
// version is added by whichever master is first; the others take it over.
//
//	root v1 ──half the life of a session──► root v2 ──────► root v3
//	                                        the last two count, so that minions come for new keys one after the other
//	session key = HKDF(root, minion id, public key, generation of its record)
//
// # Requests
//
// A request that changes something is remembered in the database by its minion and nonce (FirstTime), so that what was
// recorded on the way to one master is refused by all. A publish has no serial: a minion would drop what one master
// sends after another one counted further.
package cluster

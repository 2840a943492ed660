// Package protocol defines what travels between a Salt master and its minions: envelopes, sign-in, requests and their
// replies, published jobs, returns, events and job ids, as Salt 3006, 3007 and 3008 exchange them.
//
// It has no sockets, no goroutines and no clock. Its functions convert values to bytes and back, and check them.
// protocol/transport carries the bytes, protocol/target decides whether a job is for this host, protocol/payload
// packs, and protocol/crypt does the arithmetic.
//
// # Sign-in and session
//
// A minion knows its own RSA key and, after the first contact, the master's. Everything else it learns by signing in:
//
//	minion                                              master
//	  │  clear: _auth, id, public key, nonce N1,          │
//	  │  secret T encrypted to the cached master key,     │
//	  │  proofs for automatic acceptance (JoinProof)      │
//	  ├──────────────────────────────────────────────────▶│  ParseAuthRequest
//	  │                                                   │  pending, rejected, full: Refuse
//	  │  signed: N1, T encrypted to the minion,           │  accepted: Accept
//	  │  shared key and session key, both encrypted to    │
//	  │  the minion, proof that the master chose them     │
//	  │◀──────────────────────────────────────────────────┤
//	  │  Signin.Reply checks signature, N1, T and proof   │
//	  │                                                   │
//	  │  sealed with the session key: load, id, nonce N2, │
//	  │  tok (a signature by the minion's key)            │
//	  ├──────────────────────────────────────────────────▶│  OpenRequest: HMAC, ids equal, tok, nonce → Verified
//	  │  sealed with the session key: N2, value           │
//	  │◀──────────────────────────────────────────────────┤  Verified.Reply
//	  │                                                   │
//	  │  sealed with the shared key, signed by the master:│
//	  │  a job with a serial                              │
//	  │◀══════════════════════════════════════════════════┤  SealPublish
//	  │  OpenPublish, ParseJob, Serials.Accept            │
//
// The session key belongs to one minion; the shared key is the same for all, so a published message is believed
// only for its signature. N1 and N2 tie a reply to its request, the serial stops a published message from being
// sent again. Masters before 3006.12 and 3007.4 have no session keys: there the shared key takes its place, if an
// option allows it.
//
// # A minion, step by step
//
// Sign in with [Signin]: send what Request returns, and pass the decoded answer to Reply. If it is Accepted, keep
// the keys. Published messages go through [ParseEnvelope], [OpenPublish] and [ParseJob]; [Serials] drops replays.
// Requests are packed with [Requester.Pack] and their replies opened with [Requester.OpenReply] ([OpenPillar] for
// pillar). An error that matches [ErrReauth] means: sign in again, then repeat once.
//
// # A master, step by step
//
// [ParseEnvelope] reads everything that arrives. For enc "clear" with cmd "_auth": [ParseAuthRequest], decide, then
// [AuthRequest.Accept] or [AuthRequest.Refuse]. For enc "aes": look up the accepted key of Envelope.ID, then its
// session key, then call [OpenRequest]. Only [OpenRequest] returns a [Verified], so a handler that takes a Verified
// cannot be reached in any other way. [ReplyText] returns the text for the peer of an error.
//
// # Trust
//
// Only the envelope and the sign-in request are read before they are authenticated, and both within limits. Unknown
// fields are kept or ignored, never an error. Ids, job ids, versions, padding and nonces are checked more strictly
// than in Salt, wherever no real peer can notice.
package protocol

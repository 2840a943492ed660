// Package protocol is what travels between a Salt master and its minions: envelopes, sign-in, requests and their
// replies, published jobs, returns, events and job ids, as Salt 3006, 3007 and 3008 speak them.
//
// It has no sockets, no goroutines and no clock of its own: its functions turn values into bytes and back, and check.
// Carrying the bytes is the work of protocol/transport, finding out whether a job is meant for this host that of
// protocol/target, packing that of protocol/payload and the arithmetic that of protocol/crypt.
//
// # A minion, step by step
//
// Sign in with [Signin]: send what Request returns, give the decoded answer to Reply. When it is Accepted, keep the
// keys. Published messages go through [ParseEnvelope], [OpenPublish] and [ParseJob]; [Serials] drops replays.
// Requests are packed with [Requester.Pack] and their replies opened with [Requester.OpenReply] ([OpenPillar] for
// pillar). Any error that matches [ErrReauth] means: sign in again, then repeat once.
//
// # A master, step by step
//
// [ParseEnvelope] everything that arrives. For enc "clear" with cmd "_auth": [ParseAuthRequest], decide, then
// [AuthRequest.Accept] or [AuthRequest.Refuse]. For enc "aes": look up the accepted key of Envelope.ID first, then its
// session key, then [OpenRequest]. Only [OpenRequest] can make a [Verified], so a dispatcher of encrypted commands that
// takes a Verified cannot be reached by any other way. Errors have a text for the peer: [ReplyText].
//
// # Trust
//
// Nothing is interpreted before it is authenticated, except for the envelope and the sign-in request, which are read
// within limits. Peers may send unknown fields; these are kept or ignored, never an error. Everything here is stricter
// than Salt where no real peer can notice: ids, job ids, versions, padding, nonces.
package protocol

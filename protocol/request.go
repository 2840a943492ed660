package protocol

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
)

// tokenMessage is the text that a minion signs with its private key. The signature is its token.
const tokenMessage = "salt"

// A Requester packs the requests of a signed-in minion and opens the replies
// (salt/channel/client.py:AsyncReqChannel). Create a new one after each sign-in. It is safe for
// concurrent use.
type Requester struct {
	ID               string
	Session          *crypt.Key // the shared key with Version 2
	Token            []byte     // [RequestToken] of the minion's key
	EncAlgo, SigAlgo string     // for the pillar reply; "" is not sent
	Version          int        // 0 means [Version]
}

// RequestToken returns the token that every request carries. It is always the same for a key, which caches it.
func RequestToken(k *crypt.PrivateKey) ([]byte, error) { return k.SignX931([]byte(tokenMessage)) }

// Pack seals a request. It adds nonce, ts (whole seconds), tok and id to a copy of load, where they replace fields
// of these names. Open the reply with the returned nonce. A repeated request needs a new Pack, since a master may
// refuse a nonce that it has seen.
func (r Requester) Pack(load map[string]any, now time.Time) (Envelope, string, error) {
	return r.packSealed(load, now, nil)
}

// PackSigned is like Pack for a return with a signature of its own (option minion_sign_messages). Masters 3006
// and 3007 accept it; 3008 raises an exception on every signed return and loses it. The signature covers the load
// without nonce and tok, packed as for files, in the order in which it travels (salt/master.py:AESFuncs._return).
func (r Requester) PackSigned(load map[string]any, now time.Time, key *crypt.PrivateKey) (Envelope, string, error) {
	return r.packSealed(load, now, key)
}

// packSealed implements Pack and PackSigned; a nil key signs nothing.
func (r Requester) packSealed(load map[string]any, now time.Time, key *crypt.PrivateKey) (Envelope, string, error) {
	fail := func(err error) (Envelope, string, error) {
		return Envelope{}, "", fmt.Errorf("cannot pack request %.40v: %w", load["cmd"], err)
	}
	if r.Session == nil || len(r.Token) == 0 {
		return fail(errors.New("not signed in"))
	}
	m := make(map[string]any, len(load)+5)
	maps.Copy(m, load)
	m["id"] = r.ID
	m["ts"] = now.Unix()
	if key != nil {
		sig, err := signLoad(m, key)
		if err != nil {
			return fail(err)
		}
		m["sig"] = sig
	}
	nonce := NewNonce()
	m["nonce"], m["tok"] = nonce, r.Token
	packed, err := payload.Marshal(m)
	if err != nil {
		return fail(err)
	}
	sealed, err := r.Session.Seal(packed, "")
	if err != nil {
		return fail(err)
	}
	e := Envelope{Enc: EncAES, Load: sealed, Version: r.Version, ID: r.ID, EncAlgo: r.EncAlgo, SigAlgo: r.SigAlgo}
	if e.Version == 0 {
		e.Version = Version
	}
	return e, nonce, nil
}

// signLoad signs a return as a master verifies it: without the fields that belong to the request
// that carries it.
func signLoad(m map[string]any, key *crypt.PrivateKey) ([]byte, error) {
	m = maps.Clone(m)
	delete(m, "sig")
	delete(m, "nonce")
	delete(m, "tok")
	// Map keys are sorted in both dialects. The master keeps the order of arrival and so packs the same bytes.
	packed, err := payload.MarshalBin(m)
	if err != nil {
		return nil, err
	}
	return key.Sign(crypt.PKCS1v15SHA1, packed)
}

// OpenReply opens the decoded reply to a request with the request's nonce and returns the value in it. Errors match
// [ErrReauth] if the reply is not sealed with the session key (a master that refuses answers "bad load" in clear),
// and [ErrReplayed] if it answers another request.
func (r Requester) OpenReply(v any, nonce string) (any, error) {
	packed, err := r.openSealed(v, nonce)
	if err != nil {
		return nil, err
	}
	out, err := payload.Unmarshal(packed)
	if err != nil {
		return nil, fmt.Errorf("%w reply: %w", ErrMalformed, err)
	}
	return out, nil
}

// OpenReplyOrdered is like OpenReply with every map as a payload.OrderedMap.
func (r Requester) OpenReplyOrdered(v any, nonce string) (any, error) {
	packed, err := r.openSealed(v, nonce)
	if err != nil {
		return nil, err
	}
	out, err := payload.UnmarshalOrdered(packed, payload.Limits{})
	if err != nil {
		return nil, fmt.Errorf("%w reply: %w", ErrMalformed, err)
	}
	return out, nil
}

// OpenReplyRaw is like OpenReply for replies with file contents: byte strings stay bytes, and map keys are strings.
func (r Requester) OpenReplyRaw(v any, nonce string) (any, error) {
	packed, err := r.openSealed(v, nonce)
	if err != nil {
		return nil, err
	}
	out, err := payload.UnmarshalRaw(packed, payload.Limits{})
	if err != nil {
		return nil, fmt.Errorf("%w reply: %w", ErrMalformed, err)
	}
	return out, nil
}

// openSealed checks and decrypts a reply. Anything under 80 bytes is quoted in the error, because it is most likely
// the master's refusal in clear.
func (r Requester) openSealed(v any, nonce string) ([]byte, error) {
	if r.Session == nil || !validNonce(nonce) {
		return nil, errors.New("cannot open reply: no session key or nonce")
	}
	sealed, ok := payload.Bytes(v)
	if !ok {
		return nil, fmt.Errorf("%w: reply is %T, not sealed", ErrReauth, v)
	}
	packed, err := r.Session.Open(sealed, nonce)
	switch {
	case err == nil:
		return packed, nil
	case errors.Is(err, crypt.ErrAuth):
		if len(sealed) < 80 {
			return nil, fmt.Errorf("%w: the master answers %.80q", ErrReauth, sealed)
		}
		return nil, fmt.Errorf("%w: %w", ErrReauth, err)
	case errors.Is(err, crypt.ErrNonce):
		return nil, fmt.Errorf("%w: %w", ErrReplayed, err)
	}
	return nil, fmt.Errorf("%w reply: %w", ErrMalformed, err)
}

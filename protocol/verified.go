package protocol

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
)

// A Verified is an encrypted request that passed every check: it is sealed with the minion's session key, its inner
// id equals the outer one and is valid, and its sender has the accepted key. Only [OpenRequest] and
// [OpenRequestWith] return one that is not empty, so a function that takes a Verified cannot be reached by any
// other request (CVE-2020-11651, CVE-2024-38822). An empty one refuses to reply.
type Verified struct {
	id      string
	load    map[string]any
	nonce   string
	session *crypt.Key
}

// OK reports whether v is not the zero value.
func (v Verified) OK() bool { return v.session != nil }

// ID returns the minion that sent the request.
func (v Verified) ID() string { return v.id }

// Load returns the request without nonce and tok. Its id equals ID. The map belongs to the caller.
func (v Verified) Load() map[string]any { return v.load }

// Nonce returns the request's nonce. A master that remembers nonces can refuse repeated requests (CVE-2024-38823).
func (v Verified) Nonce() string { return v.nonce }

// Cmd returns the name of the requested function, or "" if it is missing.
func (v Verified) Cmd() string {
	cmd, _ := payload.Text(v.load["cmd"])
	return cmd
}

// Time returns when the minion claims to have packed the request, to the second.
func (v Verified) Time() (time.Time, bool) {
	ts, ok := payload.Int(v.load["ts"])
	return time.Unix(ts, 0), ok
}

// inOrder lists the fields of requests whose maps are decoded as [payload.OrderedMap]: values that
// the master passes on, and values that templates see.
var inOrder = []string{"return", "fun_args", "arg", "data", "events", "grains", "pillar_override"}

// OpenRequest opens an encrypted request. The caller must look up pub, the accepted key of e.ID, before it makes or
// reads the session key. Errors match [ErrBadLoad] and have details for the log; answer the peer with [ReplyText].
// The load of e is decrypted in place, so that a large request is in memory once. After a success e cannot be
// opened again.
func OpenRequest(e Envelope, session *crypt.Key, pub *crypt.PublicKey) (Verified, error) {
	if e.ID == "" {
		return Verified{}, badLoad("request has no id outside")
	}
	return OpenRequestWith(e, session, func(string) *crypt.PublicKey { return pub })
}

// OpenRequestWith is like OpenRequest for dialects before 3. Their envelopes have no id and their requests are sealed
// with the shared key. lookup returns the accepted key of the id inside, nil if there is none. It is called only
// after the HMAC was verified.
func OpenRequestWith(e Envelope, session *crypt.Key, lookup func(id string) *crypt.PublicKey) (Verified, error) {
	sealed, ok := e.Load.([]byte)
	switch {
	case e.Enc != EncAES || !ok:
		return Verified{}, badLoad("request is not encrypted")
	case e.ID == "" && e.Version >= 3:
		return Verified{}, badLoad("request has no id outside")
	case session == nil:
		return Verified{}, badLoad("minion %.80q has no session key", e.ID)
	}
	if e.ID != "" {
		if err := ValidID(e.ID); err != nil {
			return Verified{}, badLoad("%w", err)
		}
	}
	packed, err := session.OpenInPlace(sealed, "")
	if err != nil {
		return Verified{}, badLoad("request of %q: %w", e.ID, err)
	}
	value, err := payload.UnmarshalShared(packed, payload.Limits{}, inOrder...)
	if err != nil {
		return Verified{}, badLoad("request of %q: %w", e.ID, err)
	}
	load, ok := payload.Map(value)
	if !ok {
		return Verified{}, &LoadError{Reply: "payload and load must be a dict", Why: fmt.Errorf("load is %T", value)}
	}
	return verifyRequest(e, session, load, lookup)
}

// verifyRequest compares the ids, then checks token and nonce. tok and nonce are removed, so that no handler sees
// or stores them.
func verifyRequest(e Envelope, session *crypt.Key, load map[string]any, lookup func(string) *crypt.PublicKey) (Verified, error) {
	id, ok := load["id"].(string)
	// guard: CVE-2013-4439 TestCVE_2013_4439_OtherID,master:TestT5ForeignNames
	if !ok || e.ID != "" && subtle.ConstantTimeCompare([]byte(id), []byte(e.ID)) != 1 {
		return Verified{}, badLoad("request of %q has another id inside", e.ID)
	}
	if err := ValidID(id); err != nil {
		return Verified{}, badLoad("%w", err)
	}
	if err := checkToken(load["tok"], lookup(id)); err != nil {
		return Verified{}, badLoad("request of %q: %w", id, err)
	}
	nonce, _ := payload.Text(load["nonce"])
	// guard: CVE-2024-38823 TestCVE_2024_38823_RequestReplay
	if !validNonce(nonce) {
		return Verified{}, badLoad("request of %q: no usable nonce", id)
	}
	delete(load, "tok")
	delete(load, "nonce")
	return Verified{id: id, load: load, nonce: nonce, session: session}, nil
}

var errToken = errors.New("token is not that of the accepted key")

// checkToken checks that a token was made with the private half of pub. A token alone proves little, because it
// never changes; the session key or the HMAC around it does the rest.
func checkToken(tok any, pub *crypt.PublicKey) error {
	if pub == nil {
		return errors.New("no accepted key")
	}
	b, ok := payload.Bytes(tok)
	if !ok {
		return errToken
	}
	got, err := pub.RecoverX931(b)
	// guard: CVE-2024-38822 TestCVE_2024_38822_OtherToken,master:TestCVE_2024_38822_TokenIsAlwaysChecked
	if err != nil || subtle.ConstantTimeCompare(got, []byte(tokenMessage)) != 1 {
		return errToken
	}
	return nil
}

// Reply seals a value as the reply to v. It returns a ciphertext; the transport packs it once more with
// payload.Marshal.
func (v Verified) Reply(value any) ([]byte, error) {
	if !v.OK() {
		return nil, errors.New("cannot reply: request is not verified")
	}
	packed, err := payload.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("cannot reply to %q: %w", v.id, err)
	}
	sealed, err := v.session.Seal(packed, v.nonce)
	if err != nil {
		return nil, fmt.Errorf("cannot reply to %q: %w", v.id, err)
	}
	return sealed, nil
}

// SealPresence returns the frame with which a minion identifies itself on a TCP publish channel, so that it
// receives messages that are addressed by glob, list or pcre (salt/channel/client.py:AsyncPubChannel.send_id).
func SealPresence(id string, tok []byte, aes *crypt.Key) (Envelope, error) {
	packed, err := payload.Marshal(payload.OrderedMap{{Key: "id", Value: id}, {Key: "tok", Value: tok}})
	if err != nil {
		return Envelope{}, fmt.Errorf("cannot pack presence: %w", err)
	}
	sealed, err := aes.Seal(packed, "")
	if err != nil {
		return Envelope{}, fmt.Errorf("cannot pack presence: %w", err)
	}
	return Envelope{Enc: EncAES, Load: sealed, Version: Version}, nil
}

// OpenPresence checks a presence frame like a request and returns the id in it. Every minion knows the shared key;
// the token proves which one sent the frame.
func OpenPresence(e Envelope, aes *crypt.Key, lookup func(id string) *crypt.PublicKey) (string, error) {
	sealed, ok := e.Load.([]byte)
	if e.Enc != EncAES || !ok || aes == nil {
		return "", badLoad("presence is not encrypted")
	}
	packed, err := aes.Open(sealed, "")
	if err != nil {
		return "", badLoad("presence: %w", err)
	}
	value, err := payload.UnmarshalLimits(packed, signinLimits)
	if err != nil {
		return "", badLoad("presence: %w", err)
	}
	load, _ := payload.Map(value)
	id, ok := load["id"].(string)
	if !ok {
		return "", badLoad("presence has no id")
	}
	if err := ValidID(id); err != nil {
		return "", badLoad("presence: %w", err)
	}
	if err := checkToken(load["tok"], lookup(id)); err != nil {
		return "", badLoad("presence of %q: %w", id, err)
	}
	return id, nil
}

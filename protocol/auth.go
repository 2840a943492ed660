package protocol

import (
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
)

// Sizes of what a stranger may send in a sign-in request, in bytes.
const (
	maxPubText = 16 << 10
	maxToken   = 4 << 10
)

// AuthRequest is a minion's request to sign in, as a master sees it (salt/channel/server.py:_auth). Nothing in it is
// authenticated, except that whoever can read an accepting reply holds the private half of Pub.
type AuthRequest struct {
	ID             string // may be invalid: check with [ValidID] and [AuthRequest.Refuse]
	Nonce          string
	EncAlgo        string // a supported name
	SigAlgo        string // a supported name
	PubText        string // cleaned text of the minion's key
	Pub            *crypt.PublicKey
	PubErr         error  // why Pub is nil; such a request is to be refused
	Token          []byte // sealed with the master's key, nil at first contact
	AutosignGrains map[string]any
	JoinMAC        []byte // see [JoinMAC]; nil when there is none
	Version        int

	// Proofs beside the token, as they came: see Certificates and Document.
	certs       [][]byte
	certSig     []byte
	doc, docKey []byte
}

// ParseAuthRequest reads a sign-in request. Errors match [ErrBadLoad], or [ErrAlgorithm] for an unknown algorithm: the
// latter are [*AlgorithmError] and are answered with [BadAlgorithm]. An invalid id and an unusable key are no errors
// here, because Salt answers them with a signed refusal.
func ParseAuthRequest(e Envelope) (AuthRequest, error) {
	m, ok := payload.Map(e.Load)
	// guard: CVE-2017-14696 TestCVE_2017_14696_CraftedAuthRequest
	if e.Enc != EncClear || !ok {
		return AuthRequest{}, badLoad("sign-in request is not a clear map")
	}
	if cmd, _ := payload.Text(m["cmd"]); cmd != "_auth" {
		return AuthRequest{}, badLoad("sign-in request has another cmd")
	}
	r := AuthRequest{Version: e.Version}
	if r.ID, ok = m["id"].(string); !ok {
		return AuthRequest{}, badLoad("sign-in request: id is %T", m["id"])
	}
	// guard: CVE-2017-14696 TestCVE_2017_14696_CraftedAuthRequest
	if r.Nonce, _ = payload.Text(m["nonce"]); e.Version >= 2 && (r.Nonce == "" || len(r.Nonce) > 64) {
		return AuthRequest{}, badLoad("sign-in request: no usable nonce")
	}
	var err error
	if r.SigAlgo, err = algorithm(m, "sig", crypt.PKCS1v15SHA1, crypt.ValidSigning); err != nil {
		return AuthRequest{}, err
	}
	if r.EncAlgo, err = algorithm(m, "enc", crypt.OAEPSHA1, crypt.ValidEncryption); err != nil {
		return AuthRequest{}, err
	}
	if token, has := m["token"]; has {
		// guard: CVE-2017-14696 TestCVE_2017_14696_CraftedAuthRequest
		if r.Token, ok = payload.Bytes(token); !ok || len(r.Token) > maxToken {
			return AuthRequest{}, badLoad("sign-in request: token is %T", token)
		}
	}
	r.AutosignGrains, _ = payload.Map(m["autosign_grains"])
	r.readProof(m)
	text, ok := payload.Text(m["pub"])
	if !ok || len(text) > maxPubText {
		r.PubErr = malformed("public key: it is no text of at most %d bytes", maxPubText)
		return r, nil
	}
	r.PubText = crypt.CleanKey(text)
	r.Pub, r.PubErr = crypt.ParsePublicKey([]byte(text))
	return r, nil
}

func algorithm(m map[string]any, which, def string, valid func(string) bool) (string, error) {
	v, has := m[which+"_algo"]
	if !has {
		return def, nil
	}
	name, ok := payload.Text(v)
	if !ok {
		name = fmt.Sprintf("%T", v)
	}
	if !ok || !valid(name) {
		return "", &AlgorithmError{Which: which, Name: name}
	}
	return name, nil
}

// AuthIdentity is who a master is to its minions.
type AuthIdentity struct {
	Key     *crypt.PrivateKey
	PubText string // cleaned text of its public key; "" means that of Key

	// SignKey vouches for the public key (option master_sign_pubkey), nil if none does.
	SignKey *crypt.PrivateKey
	// PubkeySignature is sent in place of one made with SignKey: the content of the signature file of option
	// master_use_pubkey_signature, base64.
	PubkeySignature string

	// PromptReturns tells minions that this master takes a return as soon as it is there. Salt does not know the field, and
	// a minion of ours holds returns back a little from masters that do not send it.
	PromptReturns bool
}

// promptReturns is a field of the reply that accepts a minion, beyond Salt's: true when a return may follow its job at once. A stock
// salt command that still reads the news of its job when the answer comes may see it only seconds later.
const promptReturns = "prompt_returns"

func (id AuthIdentity) text() string { return orDefault(id.PubText, id.Key.Public().Text()) }

// Accept makes the reply that accepts a minion: the shared key and its session key, encrypted to it, with proof that the
// master chose them. It fails if the request has no usable key.
func (r AuthRequest) Accept(id AuthIdentity, aes, session *crypt.Key, publishPort int) (map[string]any, error) {
	if r.Pub == nil {
		return nil, fmt.Errorf("cannot accept minion %q: %w", r.ID, errors.Join(errors.New("no usable key"), r.PubErr))
	}
	wrap := func(err error) error { return fmt.Errorf("cannot accept minion %q: %w", r.ID, err) }
	inner := payload.OrderedMap{
		{Key: "enc", Value: "pub"}, {Key: "pub_key", Value: id.text()}, {Key: "publish_port", Value: publishPort},
	}
	add := func(key string, v any) { inner = append(inner, payload.Pair{Key: key, Value: v}) }
	if len(r.Token) > 0 {
		// A token made for another master's key is left out, as Salt does: the minion decides what that means.
		if clear, err := id.Key.Decrypt(r.EncAlgo, r.Token); err == nil {
			sealed, err := r.Pub.Encrypt(r.EncAlgo, clear)
			if err != nil {
				return nil, wrap(err)
			}
			add("token", sealed)
		}
	}
	text := aes.Text()
	sealed, err := r.Pub.Encrypt(r.EncAlgo, []byte(text))
	if err != nil {
		return nil, wrap(err)
	}
	add("aes", sealed)
	if session != nil {
		if sealed, err = r.Pub.Encrypt(r.EncAlgo, []byte(session.Text())); err != nil {
			return nil, wrap(err)
		}
		add("session", sealed)
	}
	proof, err := id.Key.SignX931([]byte(keyDigest([]byte(text))))
	if err != nil {
		return nil, wrap(err)
	}
	add("sig", proof)
	pubSig, err := id.vouch(r.SigAlgo)
	if err != nil {
		return nil, wrap(err)
	}
	if pubSig != "" {
		add("pub_sig", pubSig)
	}
	if r.Version < 2 {
		return inner.Map(), nil
	}
	if id.PromptReturns {
		add(promptReturns, true)
	}
	add("nonce", r.Nonce)
	return r.signed(id, inner)
}

// vouch returns the signature of the public key by the signing key, base64 with a final newline as Python makes it.
func (id AuthIdentity) vouch(sigAlgo string) (string, error) {
	if id.PubkeySignature != "" {
		return id.PubkeySignature, nil
	}
	if id.SignKey == nil {
		return "", nil
	}
	sig, err := id.SignKey.Sign(sigAlgo, []byte(id.text()))
	if err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(sig) + "\n", nil
}

// Refuse makes the reply to a minion that is not accepted: ret is true while its key is pending, false when it is
// rejected or denied or its id or key is invalid, and "full" when the master takes no more.
func (r AuthRequest) Refuse(id AuthIdentity, ret any) (map[string]any, error) {
	if r.Version < 2 {
		return map[string]any{"enc": EncClear, "load": map[string]any{"ret": ret}}, nil
	}
	return r.signed(id, payload.OrderedMap{{Key: "ret", Value: ret}, {Key: "nonce", Value: r.Nonce}})
}

func (r AuthRequest) signed(id AuthIdentity, inner payload.OrderedMap) (map[string]any, error) {
	load, err := payload.Marshal(inner)
	if err != nil {
		return nil, fmt.Errorf("cannot answer minion %q: %w", r.ID, err)
	}
	sig, err := id.Key.Sign(r.SigAlgo, load)
	if err != nil {
		return nil, fmt.Errorf("cannot answer minion %q: %w", r.ID, err)
	}
	return map[string]any{"enc": EncClear, "load": load, "sig": sig}, nil
}

// BadAlgorithm makes the unsigned reply to a request with an unknown algorithm; which is "enc" or "sig".
func BadAlgorithm(which string) map[string]any {
	return map[string]any{"enc": EncClear, "load": map[string]any{"ret": "bad " + which + " algo"}}
}

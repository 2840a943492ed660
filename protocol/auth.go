package protocol

import (
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
)

// Limits of the fields in a sign-in request, in bytes. An unauthenticated peer sends it, so nothing larger is read.
// An RSA key of 16384 bits is about 3 KiB of PEM.
const (
	maxPubText = 16 << 10
	maxToken   = 4 << 10
)

// An AuthRequest is a minion's request to sign in, as a master reads it (salt/channel/server.py:_auth). Nothing in
// it is authenticated. A reply that accepts it is useful only to the owner of the private half of Pub, because the
// keys in it are encrypted to Pub.
type AuthRequest struct {
	ID             string // may be invalid: check with [ValidID], then [AuthRequest.Refuse]
	Nonce          string
	EncAlgo        string // a supported name
	SigAlgo        string // a supported name
	PubText        string // cleaned text of the minion's key
	Pub            *crypt.PublicKey
	PubErr         error  // why Pub is nil; refuse such a request
	Token          []byte // encrypted to the master's key, nil at first contact
	AutosignGrains map[string]any
	JoinMAC        []byte // see [JoinMAC]; nil if there is none
	Version        int

	// Further proofs, not yet checked: see Certificates and Document.
	certs       [][]byte
	certSig     []byte
	doc, docKey []byte
}

// ParseAuthRequest reads a sign-in request. Errors match [ErrBadLoad]; an unknown algorithm is an
// [*AlgorithmError], which [BadAlgorithm] answers. An invalid id or an unusable key is not an error here, because
// Salt answers those with a signed refusal.
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
	if r.SigAlgo, err = requestAlgorithm(m, "sig", crypt.PKCS1v15SHA1, crypt.ValidSigning); err != nil {
		return AuthRequest{}, err
	}
	if r.EncAlgo, err = requestAlgorithm(m, "enc", crypt.OAEPSHA1, crypt.ValidEncryption); err != nil {
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
		r.PubErr = malformed("public key: it is not a string of at most %d bytes", maxPubText)
		return r, nil
	}
	r.PubText = crypt.CleanKey(text)
	r.Pub, r.PubErr = crypt.ParsePublicKey([]byte(text))
	return r, nil
}

// requestAlgorithm returns the algorithm that a request names. A request without the field comes from a Salt that
// knows only the default.
func requestAlgorithm(m map[string]any, which, def string, valid func(string) bool) (string, error) {
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

// An AuthIdentity is what a master proves to its minions: its key, and who vouches for it.
type AuthIdentity struct {
	Key     *crypt.PrivateKey
	PubText string // cleaned text of the public key; "" means that of Key

	// SignKey signs the public key (option master_sign_pubkey); nil if no key does.
	SignKey *crypt.PrivateKey
	// PubkeySignature replaces the signature by SignKey: the content, in base64, of the signature file of option
	// master_use_pubkey_signature.
	PubkeySignature string

	// PromptReturns tells minions that this master handles a return that arrives right after its
	// job. The field is brine's own. A brine minion delays its returns a little for masters that do
	// not send it.
	PromptReturns bool
	// Now is the master's clock. Its time is sent to minions if PromptReturns is set; nil sends
	// none.
	Now func() time.Time
}

// masterTime is a field of the accepting reply that Salt does not have: the master's time in seconds since 1970.
const masterTime = "time"

// promptReturns is a field of the accepting reply that Salt does not have: true if a return may
// follow its job at once. A stock salt command that is still reading the event of its own job at
// that moment may see the return only seconds later.
const promptReturns = "prompt_returns"

// publicText returns the text of the public key.
func (id AuthIdentity) publicText() string { return orDefault(id.PubText, id.Key.Public().Text()) }

// Accept builds the reply that accepts a minion: the shared key and the minion's session key, both encrypted to the
// minion, and a proof that this master chose them. It fails if the request has no usable key.
func (r AuthRequest) Accept(id AuthIdentity, aes, session *crypt.Key, publishPort int) (map[string]any, error) {
	if r.Pub == nil {
		return nil, fmt.Errorf("cannot accept minion %q: %w", r.ID, errors.Join(errors.New("no usable key"), r.PubErr))
	}
	wrap := func(err error) error { return fmt.Errorf("cannot accept minion %q: %w", r.ID, err) }
	inner := payload.OrderedMap{
		{Key: "enc", Value: "pub"}, {Key: "pub_key", Value: id.publicText()}, {Key: "publish_port", Value: publishPort},
	}
	add := func(key string, v any) { inner = append(inner, payload.Pair{Key: key, Value: v}) }
	if len(r.Token) > 0 {
		// A token for another master's key is left out, as in Salt. What that means is for the minion to decide.
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
	pubSig, err := id.vouchKey(r.SigAlgo)
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
		if id.Now != nil {
			add(masterTime, id.Now().Unix())
		}
	}
	add("nonce", r.Nonce)
	return r.signReply(id, inner)
}

// vouchKey returns the signature of the public key by the signing key: base64 with a final newline, as Python
// writes it.
func (id AuthIdentity) vouchKey(sigAlgo string) (string, error) {
	if id.PubkeySignature != "" {
		return id.PubkeySignature, nil
	}
	if id.SignKey == nil {
		return "", nil
	}
	sig, err := id.SignKey.Sign(sigAlgo, []byte(id.publicText()))
	if err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(sig) + "\n", nil
}

// Refuse builds the reply to a minion that is not accepted. ret is true while the key is pending, false if the key
// is rejected or the id or key is invalid, "full" if the master takes no more minions, and [Denied] if another key holds
// the id: false with a field that Salt's minions ignore.
func (r AuthRequest) Refuse(id AuthIdentity, ret any) (map[string]any, error) {
	denied := ret == any(Denied)
	if denied {
		ret = false
	}
	if r.Version < 2 {
		return map[string]any{"enc": EncClear, "load": map[string]any{"ret": ret}}, nil
	}
	inner := payload.OrderedMap{{Key: "ret", Value: ret}, {Key: "nonce", Value: r.Nonce}}
	if denied {
		inner = append(inner, payload.Pair{Key: "denied", Value: true})
	}
	return r.signReply(id, inner)
}

// signReply packs and signs a reply. The master signs the bytes, so the minion can check them before it reads
// anything in them.
func (r AuthRequest) signReply(id AuthIdentity, inner payload.OrderedMap) (map[string]any, error) {
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

// BadAlgorithm builds the unsigned reply to a request with an unknown algorithm. which is "enc" or "sig".
func BadAlgorithm(which string) map[string]any {
	return map[string]any{"enc": EncClear, "load": map[string]any{"ret": "bad " + which + " algo"}}
}

package protocol

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
)

// JoinMAC proves that a minion was given a token, without showing it: it is bound to the id, the key and the nonce of one sign-in, so
// who records it can do nothing with it. Masters of stock Salt ignore the field of the request that it travels in, join_mac.
func JoinMAC(token, id, pubText, nonce string) []byte {
	h := hmac.New(sha256.New, []byte(token))
	h.Write(joinText("brine join", id, pubText, nonce))
	return h.Sum(nil)
}

// joinText is what a proof is bound to: one use, one id, one key, one sign-in.
func joinText(use, id, pubText, nonce string) []byte {
	var out []byte
	for _, part := range []string{use, id, crypt.CleanKey(pubText), nonce} {
		sum := sha256.Sum256([]byte(part)) // of one length each
		out = append(out, sum[:]...)
	}
	return out
}

// Where proofs travel in a sign-in request, beside what Salt has there. Masters of stock Salt ignore them.
const (
	joinField   = "join_mac"
	joinCerts   = "join_certs" // DER, the minion's own first
	joinCertSig = "join_cert_sig"
	joinDoc     = "join_doc"     // sealed with
	joinDocKey  = "join_doc_key" // a key that is sealed with the master's
)

// Bounds of proofs as read from a stranger.
const (
	maxJoin     = 64
	maxCerts    = 8
	maxCertSize = 16 << 10
	maxDoc      = 32 << 10
)

// JoinProof is what a minion shows at its first sign-ins beside a token, so that a master can accept its key by itself.
type JoinProof struct {
	// Certificates are a chain, the minion's own first, and Signer its private key.
	Certificates []*x509.Certificate
	Signer       crypto.Signer
	// Document is what the provider of the machine says about it. It is for the master only, and is sent only where the master's key
	// is known in advance.
	Document []byte
}

// add puts the proof into a sign-in request.
func (p JoinProof) add(load payload.OrderedMap, s *Signin, pub, enc string) (payload.OrderedMap, error) {
	if p.Signer != nil && len(p.Certificates) > 0 {
		text := joinText("brine join certificate", s.ID, pub, s.nonce)
		opts := crypto.SignerOpts(crypto.SHA256)
		if _, plain := p.Signer.Public().(ed25519.PublicKey); plain {
			opts = crypto.Hash(0)
		} else {
			sum := sha256.Sum256(text)
			text = sum[:]
		}
		sig, err := p.Signer.Sign(rand.Reader, text, opts)
		if err != nil {
			return nil, fmt.Errorf("cannot sign with the key of the certificate: %w", err)
		}
		chain := make([]any, len(p.Certificates))
		for i, c := range p.Certificates {
			chain[i] = c.Raw
		}
		load = append(load, payload.Pair{Key: joinCerts, Value: chain}, payload.Pair{Key: joinCertSig, Value: sig})
	}
	if len(p.Document) > 0 && s.MasterKey != nil {
		key, err := crypt.NewKey()
		if err != nil {
			return nil, err
		}
		wrapped, err := s.MasterKey.Encrypt(enc, []byte(key.Text()))
		if err != nil {
			return nil, err
		}
		b, err := payload.MarshalBin(p.Document)
		if err != nil {
			return nil, err
		}
		doc, err := key.Seal(b, s.nonce)
		if err != nil {
			return nil, err
		}
		load = append(load, payload.Pair{Key: joinDoc, Value: doc}, payload.Pair{Key: joinDocKey, Value: wrapped})
	}
	return load, nil
}

// readProof takes the proofs out of a sign-in request, as they came.
func (r *AuthRequest) readProof(m map[string]any) {
	if mac, ok := payload.Bytes(m[joinField]); ok && len(mac) <= maxJoin {
		r.JoinMAC = mac
	}
	if list, ok := payload.List(m[joinCerts]); ok && len(list) <= maxCerts {
		for _, x := range list {
			if der, ok := payload.Bytes(x); ok && len(der) <= maxCertSize {
				r.certs = append(r.certs, der)
			}
		}
		r.certSig, _ = payload.Bytes(m[joinCertSig])
	}
	if doc, ok := payload.Bytes(m[joinDoc]); ok && len(doc) <= maxDoc+1024 {
		r.doc = doc
		r.docKey, _ = payload.Bytes(m[joinDocKey])
	}
}

// Certificates are the chain that the minion showed, its own first, once it is proved that it has the key of that one. Whether the chain
// leads anywhere is for the caller to find out. Without a chain there are none and no error.
func (r *AuthRequest) Certificates() ([]*x509.Certificate, error) {
	if len(r.certs) == 0 {
		return nil, nil
	}
	var chain []*x509.Certificate
	for _, der := range r.certs {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("certificate cannot be read: %w", err)
		}
		chain = append(chain, c)
	}
	text := joinText("brine join certificate", r.ID, r.PubText, r.Nonce)
	sum := sha256.Sum256(text)
	good := false
	switch key := chain[0].PublicKey.(type) {
	case *rsa.PublicKey:
		good = rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], r.certSig) == nil
	case *ecdsa.PublicKey:
		good = ecdsa.VerifyASN1(key, sum[:], r.certSig)
	case ed25519.PublicKey:
		good = ed25519.Verify(key, text, r.certSig)
	}
	if !good {
		return nil, errors.New("the sign-in is not signed with the key of the certificate")
	}
	return chain, nil
}

// Document opens what the minion showed of its provider, with the master's key. Without one it is nil and no error.
func (r *AuthRequest) Document(master *crypt.PrivateKey) ([]byte, error) {
	if len(r.doc) == 0 {
		return nil, nil
	}
	text, err := master.Decrypt(r.EncAlgo, r.docKey)
	if err != nil {
		return nil, fmt.Errorf("document cannot be opened: %w", err)
	}
	key, err := crypt.ParseKey(string(text))
	if err != nil {
		return nil, fmt.Errorf("document cannot be opened: %w", err)
	}
	b, err := key.Open(r.doc, r.Nonce)
	if err != nil {
		return nil, fmt.Errorf("document cannot be opened: %w", err)
	}
	v, err := payload.UnmarshalLimits(b, payload.Limits{Depth: 1, Elements: 4, Bytes: maxDoc})
	if err != nil {
		return nil, fmt.Errorf("document cannot be read: %w", err)
	}
	doc, ok := payload.Bytes(v)
	if !ok {
		return nil, errors.New("document is no bytes")
	}
	return doc, nil
}

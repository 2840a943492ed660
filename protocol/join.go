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

// JoinMAC proves that a minion has a token without showing it. The proof is bound to the id, the key and the nonce
// of one sign-in, so a recorded one is useless. It travels in the field join_mac, which masters of stock Salt
// ignore.
func JoinMAC(token, id, pubText, nonce string) []byte {
	h := hmac.New(sha256.New, []byte(token))
	h.Write(joinText("brine join", id, pubText, nonce))
	return h.Sum(nil)
}

// joinText returns what a proof is bound to: one purpose, one id, one key, one sign-in.
func joinText(use, id, pubText, nonce string) []byte {
	var out []byte
	for _, part := range []string{use, id, crypt.CleanKey(pubText), nonce} {
		sum := sha256.Sum256([]byte(part)) // hashed to equal lengths, so that no two lists of parts give the same text
		out = append(out, sum[:]...)
	}
	return out
}

// The fields of a sign-in request that carry proofs. Masters of stock Salt ignore them.
const (
	joinField   = "join_mac"
	joinCerts   = "join_certs" // DER, the minion's own first
	joinCertSig = "join_cert_sig"
	joinDoc     = "join_doc"     // sealed with the key in join_doc_key
	joinDocKey  = "join_doc_key" // that key, encrypted to the master's
)

// Limits of proofs in the request of an unauthenticated peer: bytes of a MAC, certificates, bytes of one
// certificate, bytes of a document.
const (
	maxJoin     = 64
	maxCerts    = 8
	maxCertSize = 16 << 10
	maxDoc      = 32 << 10
)

// A JoinProof is what a minion shows at its first sign-in, beside or instead of a token, so that a master can
// accept its key without an operator.
type JoinProof struct {
	// Certificates are a chain that begins with the minion's own. Signer is that one's private key.
	Certificates []*x509.Certificate
	Signer       crypto.Signer
	// Document is the statement of the machine's cloud provider about it. It is secret to the master, so it is sent
	// only if the master's key is known in advance.
	Document []byte
}

// addTo adds the proof to a sign-in request. The signature covers joinText, so it is worth nothing in another
// sign-in. Ed25519 signs the text itself, the other algorithms its SHA-256.
func (p JoinProof) addTo(load payload.OrderedMap, s *Signin, pub, enc string) (payload.OrderedMap, error) {
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

// readProof reads the proofs of a sign-in request within their limits, without checking them. A proof that is too
// large is left out, and the request is handled as one without it.
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

// Certificates returns the chain that the minion showed, its own certificate first, after checking that the minion
// has the private key. The caller must check whether it trusts the chain. It returns nil without an error if there
// is no chain.
func (r *AuthRequest) Certificates() ([]*x509.Certificate, error) {
	if len(r.certs) == 0 {
		return nil, nil
	}
	var chain []*x509.Certificate
	for _, der := range r.certs {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("cannot read the certificate: %w", err)
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

// Document decrypts the provider's document with the master's key. It returns nil without an error
// if the request has no document.
func (r *AuthRequest) Document(master *crypt.PrivateKey) ([]byte, error) {
	if len(r.doc) == 0 {
		return nil, nil
	}
	text, err := master.Decrypt(r.EncAlgo, r.docKey)
	if err != nil {
		return nil, fmt.Errorf("cannot open the document: %w", err)
	}
	key, err := crypt.ParseKey(string(text))
	if err != nil {
		return nil, fmt.Errorf("cannot open the document: %w", err)
	}
	b, err := key.Open(r.doc, r.Nonce)
	if err != nil {
		return nil, fmt.Errorf("cannot open the document: %w", err)
	}
	v, err := payload.UnmarshalLimits(b, payload.Limits{Depth: 1, Elements: 4, Bytes: maxDoc})
	if err != nil {
		return nil, fmt.Errorf("cannot read the document: %w", err)
	}
	doc, ok := payload.Bytes(v)
	if !ok {
		return nil, errors.New("cannot read the document: it is not bytes")
	}
	return doc, nil
}

package protocol

import (
	"crypto/subtle"
	"errors"
	"fmt"

	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
)

// SealPillar builds the reply to a _pillar request (salt/channel/server.py:_encrypt_private). It holds a new key,
// encrypted to the minion, and under that key the pillar, which the master signed together with the request's
// nonce. The envelope e of the request names the algorithms. The extra key is Salt's: it predates session keys,
// when all minions shared one.
func SealPillar(v Verified, e Envelope, pillar any, minion *crypt.PublicKey,
	master *crypt.PrivateKey) (map[string]any, error) {
	if !v.OK() {
		return nil, errors.New("cannot send pillar: request is not verified")
	}
	fail := func(err error) (map[string]any, error) {
		return nil, fmt.Errorf("cannot send pillar to %q: %w", v.id, err)
	}
	enc, sig := orDefault(e.EncAlgo, crypt.OAEPSHA1), orDefault(e.SigAlgo, crypt.PKCS1v15SHA1)
	key, err := crypt.NewKey()
	if err != nil {
		return fail(err)
	}
	wrapped, err := minion.Encrypt(enc, []byte(key.Text()))
	if err != nil {
		return fail(err)
	}
	data, err := payload.Marshal(payload.OrderedMap{
		{Key: "key", Value: wrapped}, {Key: "pillar", Value: pillar}, {Key: "nonce", Value: v.nonce},
	})
	if err != nil {
		return fail(err)
	}
	signature, err := master.Sign(sig, data)
	if err != nil {
		return fail(err)
	}
	packed, err := payload.Marshal(payload.OrderedMap{{Key: "data", Value: data}, {Key: "sig", Value: signature}})
	if err != nil {
		return fail(err)
	}
	sealed, err := key.Seal(packed, "")
	if err != nil {
		return fail(err)
	}
	return map[string]any{"key": wrapped, "pillar": sealed}, nil
}

// OpenPillar opens the decoded reply to a _pillar request
// (salt/channel/client.py:crypted_transfer_decode_dictentry). The reply must be encrypted to this minion, signed by
// the cached master key, and carry the nonce of this request. After an error that matches [ErrReauth] the minion
// signs in again and asks once more. A pillar that fails a check is not returned, not even in part
// (CVE-2022-22934).
func OpenPillar(v any, minion *crypt.PrivateKey, master *crypt.PublicKey, encAlgo, sigAlgo, nonce string) (map[string]any, error) {
	pillar, err := OpenPillarOrdered(v, minion, master, encAlgo, sigAlgo, nonce)
	if err != nil {
		return nil, err
	}
	plain, ok := payload.Map(payload.Plain(pillar))
	if !ok {
		return nil, malformed("pillar: it has keys that are not text")
	}
	return plain, nil
}

// OpenPillarOrdered is like [OpenPillar], but keeps the master's order of keys in maps at every depth.
func OpenPillarOrdered(v any, minion *crypt.PrivateKey, master *crypt.PublicKey, encAlgo, sigAlgo, nonce string) (payload.OrderedMap, error) {
	reply, ok := payload.Map(v)
	if !ok {
		return nil, fmt.Errorf("%w: pillar reply is %T, not a map", ErrReauth, v)
	}
	wrapped, ok := payload.Bytes(reply["key"])
	if !ok {
		if text, ok := payload.Text(reply["error"]); ok {
			return nil, fmt.Errorf("%w: the master answers %.80q", ErrReauth, text)
		}
		return nil, fmt.Errorf("%w: pillar reply has no key", ErrReauth)
	}
	sealed, ok := payload.Bytes(reply["pillar"])
	if !ok {
		return nil, malformed("pillar reply: pillar is %T", reply["pillar"])
	}
	text, err := minion.Decrypt(orDefault(encAlgo, crypt.OAEPSHA1), wrapped)
	if err != nil {
		return nil, fmt.Errorf("%w: key of pillar: %w", ErrReauth, err)
	}
	key, err := crypt.ParseKey(string(text))
	if err != nil {
		return nil, fmt.Errorf("%w key of pillar: %w", ErrMalformed, err)
	}
	packed, err := key.Open(sealed, "")
	if err != nil {
		return nil, fmt.Errorf("%w: pillar: %w", ErrReauth, err)
	}
	data, err := signedData(packed, master, orDefault(sigAlgo, crypt.PKCS1v15SHA1))
	if err != nil {
		return nil, err
	}
	field := func(name string) any {
		x, _ := data.Get(name)
		return x
	}
	inner, _ := payload.Bytes(field("key"))
	// guard: CVE-2022-22934 TestCVE_2022_22934_TamperedPillar
	if subtle.ConstantTimeCompare(inner, wrapped) != 1 {
		return nil, fmt.Errorf("%w: pillar was signed for another key", ErrReplayed)
	}
	got, _ := payload.Text(field("nonce"))
	// guard: CVE-2022-22934 TestCVE_2022_22934_TamperedPillar,minion:TestT20ForgedPillar
	if !validNonce(nonce) || subtle.ConstantTimeCompare([]byte(got), []byte(nonce)) != 1 {
		return nil, fmt.Errorf("%w: pillar has another nonce", ErrReplayed)
	}
	pillar, ok := field("pillar").(payload.OrderedMap)
	if !ok {
		return nil, malformed("pillar: it is %T, not a map", field("pillar"))
	}
	return pillar, nil
}

// signedData checks the signature over the data and decodes it. It verifies the bytes as they were sent: packing a
// decoded value again may give others.
func signedData(packed []byte, master *crypt.PublicKey, sigAlgo string) (payload.OrderedMap, error) {
	v, err := payload.UnmarshalRaw(packed, payload.Limits{Depth: 4, Elements: 16})
	if err != nil {
		return nil, fmt.Errorf("%w pillar: %w", ErrMalformed, err)
	}
	m, _ := payload.Map(v)
	raw, ok := payload.Bytes(m["data"])
	if !ok {
		return nil, malformed("pillar: it has no data")
	}
	sig, _ := payload.Bytes(m["sig"])
	if master == nil {
		return nil, fmt.Errorf("%w: no key of the master to verify pillar with", ErrReauth)
	}
	// guard: CVE-2022-22934,CVE-2024-37088 TestCVE_2022_22934_TamperedPillar,minion:TestT20ForgedPillar,minion:TestT25CallWithoutPillar
	if err := master.Verify(sigAlgo, raw, sig); err != nil {
		return nil, fmt.Errorf("%w: pillar: %w", ErrReauth, ErrBadSignature)
	}
	inner, err := payload.UnmarshalOrdered(raw, payload.Limits{})
	if err != nil {
		return nil, fmt.Errorf("%w pillar: %w", ErrMalformed, err)
	}
	data, ok := inner.(payload.OrderedMap)
	if !ok {
		return nil, malformed("pillar: its data is %T", inner)
	}
	return data, nil
}

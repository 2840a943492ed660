package protocol

import (
	"crypto/hmac"
	"crypto/sha256"

	"github.com/brine-salt/brine/protocol/crypt"
)

// JoinMAC proves that a minion was given a token, without showing it: it is bound to the id, the key and the nonce of one sign-in, so
// who records it can do nothing with it. Masters of stock Salt ignore the field of the request that it travels in, join_mac.
func JoinMAC(token, id, pubText, nonce string) []byte {
	h := hmac.New(sha256.New, []byte(token))
	for _, part := range []string{"brine join", id, crypt.CleanKey(pubText), nonce} {
		sum := sha256.Sum256([]byte(part)) // of one length each
		h.Write(sum[:])
	}
	return h.Sum(nil)
}

// joinField is where JoinMAC travels in a sign-in request.
const joinField = "join_mac"

// maxJoin bounds it as read from a stranger.
const maxJoin = 64

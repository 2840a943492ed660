package protocol_test

import (
	"fmt"
	"time"

	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
)

// A minion signs in, receives a job and returns its result. Both sides run here; a transport
// carries the bytes between them.
func Example() {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	minionKey, err := crypt.GenerateKey(2048)
	must(err)
	masterKey, err := crypt.GenerateKey(2048)
	must(err)
	aes, err := crypt.NewKey() // shared by all minions, for publishes
	must(err)
	session, err := crypt.NewKey() // of this minion, for its requests
	must(err)

	// Minion: ask to be accepted.
	signin := &protocol.Signin{ID: "web01", Key: minionKey}
	ask, err := signin.Request()
	must(err)
	wire, err := ask.Marshal()
	must(err)

	// Master: decide. This one accepts.
	e, err := protocol.ParseEnvelope(wire, payload.Limits{Bytes: 64 << 10})
	must(err)
	request, err := protocol.ParseAuthRequest(e)
	must(err)
	reply, err := request.Accept(protocol.AuthIdentity{Key: masterKey}, aes, session, 4505)
	must(err)

	// Minion: check the reply. Store MasterKeyText for the next sign-in.
	res, err := signin.Reply(reply)
	must(err)
	fmt.Println(res.Status, "at first contact:", res.FirstContact)

	// Master: publish a job to all.
	job := protocol.Job{Fun: []string{"test.ping"}, Args: [][]any{{}}, Tgt: "*",
		JID: protocol.NewJID(time.Date(2023, 11, 14, 22, 13, 20, 0, time.UTC)), Serial: 1, HasSerial: true}
	wire, err = protocol.SealPublish(job.Map(), aes, masterKey, "")
	must(err)

	// Minion: open it, drop it if it is old, run it if this minion is a target, and return the
	// result.
	e, err = protocol.ParseEnvelope(wire, payload.Limits{})
	must(err)
	load, err := protocol.OpenPublish(e, res.AES, res.MasterKey, true)
	must(err)
	got, err := protocol.ParseJob(load)
	must(err)
	var serials protocol.Serials
	must(serials.Accept(got))
	fmt.Println(got.JID, got.Fun, got.TgtType, got.Tgt)

	token, err := protocol.RequestToken(minionKey)
	must(err)
	requester := protocol.Requester{ID: "web01", Session: res.Session, Token: token}
	outcome := protocol.Return{JID: got.JID, ID: "web01", Fun: got.FunValue(), FunArgs: got.ArgValue(), Return: true,
		Retcode: 0, Success: true}
	e, nonce, err := requester.Pack(outcome.Load(), time.Now())
	must(err)

	// Master: look up the accepted key of e.ID, then open the request. Only this creates a Verified.
	verified, err := protocol.OpenRequest(e, session, minionKey.Public())
	must(err)
	ret, err := protocol.ParseReturn(verified.Load())
	must(err)
	fmt.Println(verified.ID(), verified.Cmd(), ret.Fun, ret.Return)
	sealed, err := verified.Reply(nil)
	must(err)

	// Minion: the return is acknowledged if the reply belongs to this request.
	_, err = requester.OpenReply(sealed, nonce)
	must(err)
	fmt.Println(serials.Accept(got) != nil, "that the same job is refused the second time")

	// Output:
	// accepted at first contact: true
	// 20231114221320000000 [test.ping] glob *
	// web01 _return test.ping true
	// true that the same job is refused the second time
}

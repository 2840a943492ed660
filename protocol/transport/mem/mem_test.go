package mem

import (
	"testing"

	"github.com/brine-salt/brine/protocol/transport/transporttest"
)

func TestSuite(t *testing.T) {
	var n Network
	transporttest.Run(t, transporttest.Impl{Listen: n.Listen, Dialer: n.Dialer(), Addr: "mem:0", Topics: true, Presence: true})
}

func TestSharedNetwork(t *testing.T) {
	i := transporttest.Impl{Listen: Listen, Dialer: New(), Addr: "mem:0"}
	transporttest.MustRequest(t, i.NewRequester(t, i.StartServer(t, nil), nil), "hello")
}

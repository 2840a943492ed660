package ipc

import (
	"context"
	"encoding/hex"
	"net"
	"path/filepath"
	"strconv"

	"github.com/brine-salt/brine/protocol/crypt"
)

// Names of a master's sockets below its sock_dir.
const (
	PubName  = "master_event_pub.ipc"
	PullName = "master_event_pull.ipc"
	// MarkerName is a file that Salt's command line tools look for before they start. They do not connect to it.
	MarkerName = "publish_pull.ipc"
	// WorkersName is such a file for salt.netapi.NetapiClient, and so for salt-api.
	WorkersName = "workers.ipc"
)

// Sockets are the addresses of an event bus: files, or ports of the loopback interface.
type Sockets struct {
	// Pub sends events, Pull receives them.
	Pub, Pull string
	// Marker is a file that exists while the bus does; "" for no file.
	Marker string

	workers string // a second marker
	dir     string
	tcp     bool
}

// Master returns the sockets of a master below its sock_dir.
func Master(dir string) Sockets {
	return Sockets{Pub: filepath.Join(dir, PubName), Pull: filepath.Join(dir, PullName), Marker: filepath.Join(dir, MarkerName),
		workers: filepath.Join(dir, WorkersName), dir: dir}
}

// Minion returns the sockets of a minion below its sock_dir. Their names contain a part of the id's hash (option
// hash_type), since several minions may share the directory.
func Minion(dir, id, hashType string) (Sockets, error) {
	h, err := crypt.NewHash(hashType)
	if err != nil {
		return Sockets{}, err
	}
	h.Write([]byte(id))
	name := "minion_event_" + hex.EncodeToString(h.Sum(nil))[:10]
	return Sockets{Pub: filepath.Join(dir, name+"_pub.ipc"), Pull: filepath.Join(dir, name+"_pull.ipc"), dir: dir}, nil
}

// Ports returns sockets on the loopback interface (option ipc_mode: tcp). Every user of the host can reach them.
func Ports(v6 bool, pub, pull int) Sockets {
	host := "127.0.0.1"
	if v6 {
		host = "::1"
	}
	return Sockets{Pub: net.JoinHostPort(host, strconv.Itoa(pub)), Pull: net.JoinHostPort(host, strconv.Itoa(pull)), tcp: true}
}

func (a Sockets) dial(ctx context.Context, addr string) (net.Conn, error) {
	network := "unix"
	if a.tcp {
		network = "tcp"
	}
	var d net.Dialer
	return d.DialContext(ctx, network, addr)
}

package freeport

import (
	"fmt"
	"net"
	"testing"
)

func TestPorts(t *testing.T) {
	seen := make(map[int]bool)
	for _, port := range Ports(t, 200) {
		if port < first || port > last || seen[port] {
			t.Errorf("port %d, after %d others", port, len(seen))
		}
		seen[port] = true
	}
	l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", Port(t)))
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

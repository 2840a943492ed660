//go:build !custom || states || states.etcd

package all

import _ "github.com/brine-salt/brine/states/etcd_mod" // state module etcd

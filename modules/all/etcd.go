//go:build !custom || modules || modules.etcd

package all

import _ "github.com/brine-salt/brine/modules/etcdmod" // execution module etcd

//go:build !custom || modules || modules.http

package all

import _ "github.com/brine-salt/brine/modules/httpmod" // execution module http

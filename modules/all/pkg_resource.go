//go:build !custom || modules || modules.pkg_resource

package all

import _ "github.com/brine-salt/brine/modules/pkgresource" // execution module pkg_resource

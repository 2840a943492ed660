//go:build !custom || returners || returners.http_post

package all

import _ "github.com/brine-salt/brine/modules/returners/httppost" // returner http_post

// The program coredns is CoreDNS with the plugins that the test cluster uses; its releases have fifty more, and those of clouds among them.
// https://coredns.io/2017/07/25/compile-time-enabling-or-disabling-plugins/
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/ready"
)

func main() {
	dnsserver.Directives = []string{"health", "ready", "errors", "cache", "loadbalance", "kubernetes"} // the order in which they are asked
	coremain.Run()
}

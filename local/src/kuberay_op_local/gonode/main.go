// Package main links the programs that a node runs into one binary; the name
// it is called by (a link) decides which of them it is. The control plane has
// a binary of its own (../go): who plays nodes with kwok never builds this one.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// programs by name; other files of this package add theirs.
var programs = map[string]func(){
	"kubelet":    func() { os.Exit(cli.Run(kubelet.NewKubeletCommand(context.Background()))) },
	"kube-proxy": func() { os.Exit(cli.Run(proxy.NewProxyCommand())) },
}

func main() {
	name := filepath.Base(os.Args[0])
	run, known := programs[name]
	if !known {
		names := make([]string, 0, len(programs))
		for program := range programs {
			names = append(names, program)
		}
		slices.Sort(names)
		fmt.Fprintf(os.Stderr, "%s is not one of %v: call me through a link of that name\n", name, names)
		os.Exit(2)
	}
	run()
}

// The oracle answers what the Go libraries of Kubernetes and of the reference say, so that ours can be compared.
// It reads one JSON object {"op": "...", "in": [...]} from stdin and writes one JSON array of answers.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"
)

type answer map[string]any

var refused = answer{"ok": false}

func bits(value uint64) string { return strconv.FormatUint(value, 10) }

func askCron(in []string) answer {
	schedule, err := cron.ParseStandard(in[0])
	if err != nil {
		return refused
	}
	switch s := schedule.(type) {
	case cron.ConstantDelaySchedule:
		return answer{"ok": true, "every": s.Delay.Nanoseconds()}
	case *cron.SpecSchedule:
		return answer{"ok": true, "minute": bits(s.Minute), "hour": bits(s.Hour), "dom": bits(s.Dom),
			"month": bits(s.Month), "dow": bits(s.Dow)}
	}
	return refused
}

// askNext gives the next times of a schedule: in is schedule, zone, base in Unix seconds, how many.
func askNext(in []string) answer {
	schedule, err := cron.ParseStandard("TZ=" + in[1] + " " + in[0])
	if err != nil {
		return refused
	}
	base, err := strconv.ParseInt(in[2], 10, 64)
	if err != nil {
		return refused
	}
	count, err := strconv.Atoi(in[3])
	if err != nil {
		return refused
	}
	times := []int64{}
	next := time.Unix(base, 0)
	for len(times) < count {
		next = schedule.Next(next)
		if next.IsZero() {
			break
		}
		times = append(times, next.Unix())
	}
	return answer{"ok": true, "times": times}
}

func askDuration(in []string) answer {
	duration, err := time.ParseDuration(in[0])
	if err != nil {
		return refused
	}
	return answer{"ok": true, "ns": strconv.FormatInt(duration.Nanoseconds(), 10)}
}

func askQuantity(in []string) answer {
	left, err := resource.ParseQuantity(in[0])
	if err != nil {
		return refused
	}
	right, err := resource.ParseQuantity(in[1])
	if err != nil {
		return refused
	}
	factor, err := strconv.ParseInt(in[2], 10, 64)
	if err != nil {
		return refused
	}
	sum := left.DeepCopy()
	sum.Add(right)
	product := left.DeepCopy()
	product.Mul(factor)
	// Adding to zero drops the text a quantity was parsed from, so this is its canonical form.
	canonical := resource.Quantity{}
	canonical.Add(left)
	return answer{"ok": true, "canonical": canonical.String(), "sum": sum.String(), "product": product.String()}
}

func askVersion(in []string) answer {
	left, err := version.ParseGeneric(in[0])
	if err != nil {
		return refused
	}
	right, err := version.ParseGeneric(in[1])
	if err != nil {
		return refused
	}
	return answer{"ok": true, "less": left.LessThan(right), "equal": left.EqualTo(right)}
}

func askYaml(in []string) answer {
	text, err := yaml.YAMLToJSON([]byte(in[0]))
	if err != nil {
		return refused
	}
	return answer{"ok": true, "json": string(text)}
}

var operations = map[string]func([]string) answer{
	"cron": askCron, "next": askNext, "duration": askDuration, "quantity": askQuantity, "version": askVersion,
	"yaml": askYaml,
}

func ask(op string, in []string) (out answer) {
	defer func() {
		if recover() != nil {
			out = refused
		}
	}()
	return operations[op](in)
}

func main() {
	var request struct {
		Op string     `json:"op"`
		In [][]string `json:"in"`
	}
	if err := json.NewDecoder(os.Stdin).Decode(&request); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	answers := make([]answer, 0, len(request.In))
	for _, in := range request.In {
		answers = append(answers, ask(request.Op, in))
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

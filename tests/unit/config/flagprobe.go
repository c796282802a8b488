// Reads argument lists, one JSON array per line, and prints what Go's flag package makes of each.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var arguments []string
		if err := json.Unmarshal(lines.Bytes(), &arguments); err != nil {
			panic(err)
		}
		set := flag.NewFlagSet("probe", flag.ContinueOnError)
		set.SetOutput(io.Discard)
		set.String("text", "", "")
		set.String("other-text", "", "")
		set.Bool("bool", false, "")
		set.Bool("other-bool", true, "")
		set.Int("int", 0, "")
		set.Float64("float", 0, "")
		err := set.Parse(arguments)
		answer := map[string]any{"help": err == flag.ErrHelp, "rest": set.Args()}
		if err != nil {
			answer["error"] = err.Error()
		}
		values := map[string]string{}
		set.Visit(func(f *flag.Flag) { values[f.Name] = f.Value.String() })
		answer["values"] = values
		text, _ := json.Marshal(answer)
		fmt.Println(string(text))
	}
}

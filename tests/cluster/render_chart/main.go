// render_chart renders a Helm chart with Go's text/template and sprig, as Helm does, and prints its documents.
//
//	render_chart CHART NAMESPACE RELEASE [NAME=VALUE]...   VALUE is YAML; NAME a path in the values with dots
//
// Functions of Helm beside sprig's: include, required, fail, toYaml. A missing value is an empty value, as in Helm.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"gopkg.in/yaml.v3"
)

type values = map[string]interface{}

type files struct{ chart string }

// Get is .Files.Get: "" for a missing file.
func (f files) Get(name string) string {
	text, err := os.ReadFile(filepath.Join(f.chart, name))
	if err != nil {
		return ""
	}
	return string(text)
}

func readYAML(path string) (values, error) {
	result := values{}
	text, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(text, &result)
	}
	return result, err
}

func set(tree values, assignment string) error {
	name, text, found := strings.Cut(assignment, "=")
	var value interface{}
	if !found || yaml.Unmarshal([]byte(text), &value) != nil {
		return fmt.Errorf("%s is not NAME=VALUE", assignment)
	}
	parts := strings.Split(name, ".")
	for _, part := range parts[:len(parts)-1] {
		next, isTree := tree[part].(values)
		if !isTree {
			return fmt.Errorf("%s: the chart has no value of this name", name)
		}
		tree = next
	}
	last := parts[len(parts)-1]
	if _, exists := tree[last]; !exists {
		return fmt.Errorf("%s: the chart has no value of this name", name)
	}
	tree[last] = value
	return nil
}

func functions(t *template.Template) template.FuncMap {
	result := sprig.TxtFuncMap()
	result["include"] = func(name string, data interface{}) (string, error) {
		var out bytes.Buffer
		err := t.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	result["required"] = func(message string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return nil, fmt.Errorf("%s", message)
		}
		return value, nil
	}
	result["toYaml"] = func(value interface{}) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	return result
}

func render(chart, namespace, release string, assignments []string) error {
	about, err := readYAML(filepath.Join(chart, "Chart.yaml"))
	if err != nil {
		return err
	}
	tree, err := readYAML(filepath.Join(chart, "values.yaml"))
	for i := 0; err == nil && i < len(assignments); i++ {
		err = set(tree, assignments[i])
	}
	if err != nil {
		return err
	}
	paths, _ := filepath.Glob(filepath.Join(chart, "templates", "*"))
	sort.Strings(paths)
	root := template.New("chart").Option("missingkey=zero")
	root.Funcs(functions(root))
	base := about["name"].(string) + "/templates"
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err == nil {
			_, err = root.New(base + "/" + filepath.Base(path)).Parse(string(text))
		}
		if err != nil {
			return err
		}
	}
	for _, path := range paths {
		name := base + "/" + filepath.Base(path)
		if filepath.Ext(path) != ".yaml" {
			continue
		}
		var out bytes.Buffer
		data := values{
			"Values": tree, "Files": files{chart}, "Template": values{"Name": name, "BasePath": base},
			"Chart":   values{"Name": about["name"], "Version": about["version"], "AppVersion": about["appVersion"]},
			"Release": values{"Name": release, "Namespace": namespace, "Service": "Helm"},
		}
		if err := root.ExecuteTemplate(&out, name, data); err != nil {
			return err
		}
		if text := strings.TrimSpace(out.String()); text != "" {
			fmt.Printf("---\n# Source: %s\n%s\n", name, strings.TrimPrefix(text, "---\n"))
		}
	}
	return nil
}

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: render_chart CHART NAMESPACE RELEASE [NAME=VALUE]...")
		os.Exit(2)
	}
	if err := render(os.Args[1], os.Args[2], os.Args[3], os.Args[4:]); err != nil {
		fmt.Fprintln(os.Stderr, "render_chart:", err)
		os.Exit(1)
	}
}

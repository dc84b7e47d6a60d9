// words.cjs FILE...: the words of words.yml outside Markdown: in CRDs, the chart, scripts and CMake files. One line per finding.
// A template of the chart counts by its comments alone, because its messages repeat those of the program. Code spans are skipped.
"use strict";

const fs = require("fs");
const path = require("path");
const { load } = require("js-yaml");

const rules = load(fs.readFileSync(path.join(__dirname, "words.yml"), "utf8")).rules.map(({ expected, pattern }) => {
    const [, source, flags] = /^\/(.*)\/(\w*)$/.exec(pattern);
    // Two words may stand on two lines of a comment.
    return { expected, pattern: new RegExp(source.replace(/ /g, "(?:[ \\t]|\\n[ \\t]*(?:#[ \\t]*)?)+"), `${flags}g`) };
});

const blank = (text) => text.replace(/[^\n]/g, " ");

function comments(text) {
    let end = 0, kept = "";
    for (const match of text.matchAll(/\{\{-? *\/\*[^]*?\*\/|(?<=^|\s)# .*$/gm)) {
        kept += blank(text.slice(end, match.index)) + match[0];
        end = match.index + match[0].length;
    }
    return kept + blank(text.slice(end));
}

function prose(file) {
    const text = fs.readFileSync(file, "utf8");
    const template = /\/templates\/.*\.(yaml|tpl)$/.test(file);
    // `code`, and names like system:masters.
    return (template ? comments(text) : text).replace(/`[^`\n]*`|\w+:\w+/g, blank);
}

let found = false;
for (const file of process.argv.slice(2)) {
    const text = prose(file);
    for (const { expected, pattern } of rules) {
        for (const match of text.matchAll(pattern)) {
            const before = text.slice(0, match.index).split("\n");
            console.log(`${file}:${before.length}:${before.at(-1).length + 1}: ${match[0].replace(/[\s#]+/g, " ")} => ${expected}`);
            found = true;
        }
    }
}
process.exitCode = found ? 1 : 0;

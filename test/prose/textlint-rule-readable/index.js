// Lines that fit a terminal, sentences that are read once: lengths of both, in characters and in words.
// A line counts outside code blocks and tables, unless it has an address that cannot be broken. A code span is one word.
"use strict";

const { split } = require("sentence-splitter");

function words(node) {
    switch (node.type) {
        case "Code":
        case "Image":
            return "code";
        case "Html":
            return "";
        case "Break":
            return " ";
        default:
            return node.children ? node.children.map(words).join("") : node.value || "";
    }
}
const count = (text) => text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
const shorten = (text) => text.replace(/\s+/g, " ").trim().slice(0, 60);

module.exports = function (context, options) {
    const { Syntax, RuleError, report, getSource, locator } = context;
    const lengths = [];
    const spared = [];
    const spare = (node) => { for (let line = node.loc.start.line; line <= node.loc.end.line; ++line) spared[line] = true; };

    return {
        [Syntax.CodeBlock]: spare,
        [Syntax.Table]: spare,
        [Syntax.Html]: spare,
        [Syntax.Paragraph](node) {
            const text = words(node);
            for (const sentence of split(text).filter((part) => part.type === "Sentence")) {
                const length = count(sentence.raw);
                if (length === 0) continue;
                lengths.push(length);
                if (length > options.sentence) {
                    report(node, new RuleError(
                        `a sentence of ${length} words, at most ${options.sentence}: split it: "${shorten(sentence.raw)} ..."`));
                }
            }
        },
        [Syntax.TableCell](node) {
            const length = count(words(node));
            if (length > options.cell) {
                report(node, new RuleError(
                    `a table cell of ${length} words, at most ${options.cell}: say the rest below the table: "${shorten(words(node))} ..."`));
            }
        },
        [Syntax.DocumentExit](node) {
            let offset = 0;
            getSource(node).split("\n").forEach((line, index) => {
                if (line.length > options.line && !spared[index + 1] && !/https?:\/\//.test(line)) {
                    report(node, new RuleError(`a line of ${line.length} characters, at most ${options.line}: wrap it`,
                        { padding: locator.at(offset + options.line) }));
                }
                offset += line.length + 1;
            });
            const average = lengths.reduce((sum, length) => sum + length, 0) / (lengths.length || 1);
            if (average > options.average) {
                report(node, new RuleError(
                    `${average.toFixed(1)} words a sentence on average, at most ${options.average}: say less in each`));
            }
        },
    };
};

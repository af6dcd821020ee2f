//===- Einsum.cpp - Einsum ------------------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operands are contracted from left to right. A pair with common summation
// labels becomes one batched matrix product, any other pair an element-wise
// product; labels that only one operand has are summed before.
//
//===----------------------------------------------------------------------===//

#include "Contraction/Products.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "dialects/ONNX/ONNX.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace sardonyx {
namespace {

/// A label: a letter, or a dimension of the ellipsis counted from the end as
/// -1, -2, ...
using Labels = SmallVector<int64_t>;

struct Term {
  Value value;
  Labels labels;
};

/// Labels of a term of the equation; "..." stands for `ellipsisRank`
/// dimensions.
FailureOr<Labels> parseLabels(StringRef text, int64_t ellipsisRank) {
  Labels labels;
  while (!text.empty()) {
    if (text.consume_front("...")) {
      for (int64_t i = ellipsisRank; i > 0; --i)
        labels.push_back(-i);
      continue;
    }
    if (!llvm::isAlpha(text.front()))
      return failure();
    labels.push_back(text.front());
    text = text.drop_front();
  }
  return labels;
}

struct Equation {
  SmallVector<Labels> inputs;
  Labels output;
};

/// Fails on anything but `terms -> term` that fits the ranks of the operands.
FailureOr<Equation> parseEquation(StringRef text, ValueRange operands) {
  std::string plain;
  for (char c : text)
    if (c != ' ')
      plain.push_back(c);
  bool isExplicit = plain.find("->") != std::string::npos;
  auto [left, right] = StringRef(plain).split("->");
  SmallVector<StringRef> terms;
  left.split(terms, ',');
  if (terms.size() != operands.size())
    return failure();
  Equation equation;
  int64_t widest = 0;
  for (auto [term, operand] : llvm::zip_equal(terms, operands)) {
    int64_t rank = rankedType(operand).getRank(), ellipsis = 0;
    if (term.contains("..."))
      ellipsis = rank - (static_cast<int64_t>(term.size()) - 3);
    if (ellipsis < 0)
      return failure();
    widest = std::max(widest, ellipsis);
    FailureOr<Labels> labels = parseLabels(term, ellipsis);
    if (failed(labels) || static_cast<int64_t>(labels->size()) != rank)
      return failure();
    equation.inputs.push_back(*labels);
  }
  if (isExplicit) {
    FailureOr<Labels> labels = parseLabels(right, widest);
    if (failed(labels))
      return failure();
    equation.output = *labels;
  } else {
    // The ellipsis, then each label that occurs once, in alphabetical order.
    for (int64_t i = widest; i > 0; --i)
      equation.output.push_back(-i);
    for (int64_t letter = 'A'; letter <= 'z'; ++letter) {
      int64_t times = 0;
      for (const Labels &labels : equation.inputs)
        times += llvm::count(labels, letter);
      if (times == 1)
        equation.output.push_back(letter);
    }
  }
  llvm::SmallSetVector<int64_t, 8> known;
  for (const Labels &labels : equation.inputs)
    known.insert(labels.begin(), labels.end());
  llvm::SmallSetVector<int64_t, 8> unique;
  for (int64_t label : equation.output)
    if (!known.contains(label) || !unique.insert(label))
      return failure();
  return equation;
}

class Contractor {
public:
  explicit Contractor(TensorBuilder &b) : b(b) {}

  FailureOr<Value> run(const Equation &equation, ValueRange operands) {
    SmallVector<Term> terms;
    for (auto [labels, value] : llvm::zip_equal(equation.inputs, operands)) {
      FailureOr<Term> term = takeDiagonal({value, labels});
      if (failed(term))
        return failure();
      terms.push_back(*term);
    }
    Term result = terms.front();
    for (size_t i = 1; i < terms.size(); ++i) {
      llvm::SmallSetVector<int64_t, 8> needed;
      needed.insert(equation.output.begin(), equation.output.end());
      for (size_t j = i + 1; j < terms.size(); ++j)
        needed.insert(terms[j].labels.begin(), terms[j].labels.end());
      FailureOr<Term> pair = contract(result, terms[i], needed.getArrayRef());
      if (failed(pair))
        return failure();
      result = *pair;
    }
    result = sumOver(result, [&](int64_t label) {
      return !llvm::is_contained(equation.output, label);
    });
    if (result.labels.size() != equation.output.size())
      return failure();
    return permute(result, equation.output).value;
  }

private:
  OpFoldResult sizeOf(const Term &term, int64_t label) {
    return b.dim(term.value,
                 llvm::find(term.labels, label) - term.labels.begin());
  }

  /// One dimension for each label.
  FailureOr<Term> takeDiagonal(Term term) {
    Labels unique;
    Sizes sizes;
    SmallVector<int64_t> dims;
    for (auto [dim, label] : llvm::enumerate(term.labels)) {
      auto *seen = llvm::find(unique, label);
      dims.push_back(seen - unique.begin());
      OpFoldResult size = b.dim(term.value, dim);
      if (seen == unique.end()) {
        unique.push_back(label);
        sizes.push_back(size);
      } else if (!b.sameSize(sizes[dims.back()], size,
                             "sizes of a repeated label differ")) {
        return failure();
      }
    }
    if (unique.size() == term.labels.size())
      return term;
    Type type = elementTypeOf(term.value);
    Value diagonal =
        b.elementwise(
             sizes, term.value, b.dimsMap(unique.size(), dims), {type},
             [](TensorBuilder &, ValueRange args) -> SmallVector<Value> {
               return {args[0]};
             })
            .front();
    return Term{diagonal, unique};
  }

  /// Sums the labels for which `drops` holds.
  Term sumOver(Term term, llvm::function_ref<bool(int64_t)> drops) {
    Labels kept;
    SmallVector<int64_t> keptDims;
    Sizes sizes;
    int64_t rank = term.labels.size();
    SmallVector<utils::IteratorType> iterators;
    for (int64_t dim = 0; dim < rank; ++dim) {
      bool dropped = drops(term.labels[dim]);
      iterators.push_back(dropped ? utils::IteratorType::reduction
                                  : utils::IteratorType::parallel);
      if (dropped)
        continue;
      kept.push_back(term.labels[dim]);
      keptDims.push_back(dim);
      sizes.push_back(b.dim(term.value, dim));
    }
    if (kept.size() == term.labels.size())
      return term;
    Value sum =
        b.generic(term.value, b.zeros(sizes, elementTypeOf(term.value)),
                  {b.identityMap(rank), b.dimsMap(rank, keptDims)}, iterators,
                  [](TensorBuilder &s, ValueRange args) -> SmallVector<Value> {
                    return {s.add(args[1], args[0])};
                  })
            .front();
    return {sum, kept};
  }

  Term permute(const Term &term, const Labels &labels) {
    SmallVector<int64_t> permutation;
    for (int64_t label : labels)
      permutation.push_back(llvm::find(term.labels, label) -
                            term.labels.begin());
    return {b.transpose(term.value, permutation), labels};
  }

  /// Drops dimensions of size 1 that the other term has with another size.
  Term dropBroadcast(const Term &term, const Term &other) {
    SmallVector<int64_t> axes;
    Labels kept;
    for (auto [dim, label] : llvm::enumerate(term.labels)) {
      if (llvm::is_contained(other.labels, label) &&
          getStaticSize(b.dim(term.value, dim)) == 1 &&
          getStaticSize(sizeOf(other, label)) != 1)
        axes.push_back(dim);
      else
        kept.push_back(label);
    }
    return {squeeze(b, b.getLoc(), term.value, axes), kept};
  }

  FailureOr<Term> contract(Term lhs, Term rhs, ArrayRef<int64_t> needed) {
    Term left = dropBroadcast(lhs, rhs), right = dropBroadcast(rhs, lhs);
    auto isNeeded = [&](int64_t label) {
      return llvm::is_contained(needed, label);
    };
    left = sumOver(left, [&](int64_t label) {
      return !isNeeded(label) && !llvm::is_contained(right.labels, label);
    });
    right = sumOver(right, [&](int64_t label) {
      return !isNeeded(label) && !llvm::is_contained(left.labels, label);
    });
    Labels batch, rows, columns, inner;
    Sizes leftSizes = b.dims(left.value), rightSizes = b.dims(right.value);
    for (auto [dim, label] : llvm::enumerate(left.labels)) {
      auto *other = llvm::find(right.labels, label);
      if (other == right.labels.end()) {
        rows.push_back(label);
        continue;
      }
      OpFoldResult &mine = leftSizes[dim];
      OpFoldResult &theirs = rightSizes[other - right.labels.begin()];
      mine = theirs =
          b.broadcastSize(mine, theirs, "sizes of a label cannot be broadcast");
      if (!mine)
        return failure();
      (isNeeded(label) ? batch : inner).push_back(label);
    }
    left.value = b.broadcast(left.value, leftSizes);
    right.value = b.broadcast(right.value, rightSizes);
    for (int64_t label : right.labels)
      if (!llvm::is_contained(left.labels, label))
        columns.push_back(label);
    if (inner.empty())
      return multiply(left, right, batch, rows, columns);
    return multiplyMatrices(left, right, batch, rows, columns, inner);
  }

  Term multiply(const Term &left, const Term &right, const Labels &batch,
                const Labels &rows, const Labels &columns) {
    Labels labels(batch);
    labels.append(rows);
    labels.append(columns);
    Sizes sizes;
    for (int64_t label : labels)
      sizes.push_back(
          sizeOf(llvm::is_contained(left.labels, label) ? left : right, label));
    auto getMap = [&](const Term &term) {
      SmallVector<int64_t> dims;
      for (int64_t label : term.labels)
        dims.push_back(llvm::find(labels, label) - labels.begin());
      return b.dimsMap(labels.size(), dims);
    };
    Value product =
        b.elementwise(
             sizes, {left.value, right.value}, {getMap(left), getMap(right)},
             {elementTypeOf(left.value)},
             [](TensorBuilder &s, ValueRange args) -> SmallVector<Value> {
               return {s.mul(args[0], args[1])};
             })
            .front();
    return {product, labels};
  }

  /// A term as [batch, first..., second...] with each of the three collapsed.
  Value toMatrices(const Term &term, const Labels &batch, const Labels &first,
                   const Labels &second) {
    Labels order(batch);
    order.append(first);
    order.append(second);
    Term ordered = permute(term, order);
    Value value = ordered.value;
    int64_t begin = batch.size(), middle = begin + first.size();
    value = collapseRange(b, b.getLoc(), value, middle, order.size());
    value = collapseRange(b, b.getLoc(), value, begin, middle);
    return collapseRange(b, b.getLoc(), value, 0, begin);
  }

  FailureOr<Term> multiplyMatrices(const Term &left, const Term &right,
                                   const Labels &batch, const Labels &rows,
                                   const Labels &columns, const Labels &inner) {
    Labels labels(batch);
    labels.append(rows);
    labels.append(columns);
    Sizes sizes;
    for (int64_t label : labels)
      sizes.push_back(
          sizeOf(llvm::is_contained(left.labels, label) ? left : right, label));
    Value lhs = toMatrices(left, batch, rows, inner);
    // Transposed last, so that packing absorbs it, when K is the fast
    // dimension.
    bool transposed =
        !right.labels.empty() && llvm::is_contained(inner, right.labels.back());
    Value rhs =
        transposed
            ? b.transpose(toMatrices(right, batch, columns, inner), {0, 2, 1})
            : toMatrices(right, batch, inner, columns);
    FailureOr<Value> product = createMatMul(b, lhs, rhs);
    if (failed(product))
      return failure();
    SmallVector<ReassociationIndices> groups;
    SmallVector<int64_t> empty;
    int64_t dim = 0;
    const int64_t counts[] = {static_cast<int64_t>(batch.size()),
                              static_cast<int64_t>(rows.size()),
                              static_cast<int64_t>(columns.size())};
    for (auto [position, count] : llvm::enumerate(counts)) {
      if (count == 0) {
        empty.push_back(position);
        continue;
      }
      appendGroup(groups, dim, count);
      dim += count;
    }
    Value result = squeeze(b, b.getLoc(), *product, empty);
    return Term{b.expand(result, groups, sizes), labels};
  }

  TensorBuilder &b;
};

LogicalResult lowerEinsum(Lowering<onnx::EinsumOp> &b) {
  Type element = getOnnxElementType(b.op->getOperand(0));
  if (!element || isBoolType(element))
    return b.refuseAlways("element type has no product");
  FailureOr<Equation> equation =
      parseEquation(b.op.getEquation(), b.in.getOperands());
  if (failed(equation))
    return b.refuse("equation does not fit the inputs");
  Type stored = elementTypeOf(b.in.getOperands().front());
  SmallVector<Value> operands;
  for (Value operand : b.in.getOperands())
    operands.push_back(b.convertElements(operand, getAccumulatorType(stored)));
  FailureOr<Value> result = Contractor(b).run(*equation, operands);
  if (failed(result))
    return b.refuse("sizes do not fit the equation");
  return b.replace(b.convertElements(*result, stored));
}

} // namespace

void populateEinsumPatterns(const TypeConverter &converter,
                            RewritePatternSet &patterns) {
  addLowering<onnx::EinsumOp, lowerEinsum>(patterns, converter);
}

} // namespace sardonyx

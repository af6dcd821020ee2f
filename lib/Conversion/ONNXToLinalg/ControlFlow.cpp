//===- ControlFlow.cpp - If, Loop and Scan --------------------------------===//
//
// A graph becomes an scf.execute_region whose results are what it yields; the
// structured op around it carries them. Values whose shape changes from one
// iteration to the next have a type that fits all.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"
#include "DataMovement.h"
#include "Sequences.h"

#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {
namespace {

/// The condition tensor (one element, bool) as i1.
Value loadCondition(OpBuilder &b, Location loc, Value tensor) {
  return loadScalar(b, loc, getScalar(b, loc, tensor), b.getI1Type());
}

/// The type that holds values of both types; null when ranks or element types
/// differ.
RankedTensorType joinTypes(Type x, Type y) {
  auto a = dyn_cast_or_null<RankedTensorType>(x);
  auto c = dyn_cast_or_null<RankedTensorType>(y);
  if (!a || !c || a.getRank() != c.getRank() ||
      a.getElementType() != c.getElementType())
    return {};
  SmallVector<int64_t> shape;
  for (auto [m, n] : llvm::zip_equal(a.getShape(), c.getShape()))
    shape.push_back(m == n ? m : ShapedType::kDynamic);
  return RankedTensorType::get(shape, a.getElementType());
}

/// What the graph in `region` yields.
ValueRange getYielded(Region &region) {
  return region.front().getTerminator()->getOperands();
}

FailureOr<SmallVector<Type>> convertTypes(const TypeConverter &converter,
                                          ValueRange values) {
  SmallVector<Type> types;
  for (Value value : values) {
    types.push_back(converter.convertType(value.getType()));
    if (!isa_and_nonnull<RankedTensorType>(types.back()))
      return failure();
  }
  return types;
}

/// Moves the graph in `region` to the insertion point, its arguments being
/// `arguments` (converted), and returns what it yields as values of `types`.
FailureOr<ValueRange> inlineGraph(ConversionPatternRewriter &rewriter,
                                  const TypeConverter &converter, Location loc,
                                  Region &region, ValueRange arguments,
                                  TypeRange types) {
  auto scope = scf::ExecuteRegionOp::create(rewriter, loc, types);
  rewriter.inlineRegionBefore(region, scope.getRegion(),
                              scope.getRegion().end());
  Block &block = scope.getRegion().front();
  TypeConverter::SignatureConversion signature(block.getNumArguments());
  for (auto [i, argument] : llvm::enumerate(block.getArguments())) {
    Type type = converter.convertType(argument.getType());
    if (!type)
      return failure();
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(scope);
    signature.remapInput(i, castTo(rewriter, loc, arguments[i], type));
  }
  rewriter.applySignatureConversion(&block, signature, &converter);
  return ValueRange(scope.getResults());
}

/// The end of a graph: its values in the types that the op around it returns.
struct YieldLowering : OnnxPattern<onnx::YieldOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::YieldOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Operation *parent = op->getParentOp();
    if (!isa<scf::ExecuteRegionOp, scf::IfOp>(parent))
      return refuse(op, "the op around has no lowering");
    SmallVector<Value> values;
    for (auto [value, type] :
         llvm::zip_equal(adaptor.getOperands(), parent->getResultTypes()))
      values.push_back(castTo(rewriter, op.getLoc(), value, type));
    rewriter.replaceOpWithNewOp<scf::YieldOp>(op, values);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// If
//===----------------------------------------------------------------------===//

struct IfLowering : OnnxPattern<onnx::IfOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::IfOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    const TypeConverter &converter = *getTypeConverter();
    auto thenTypes = convertTypes(converter, getYielded(op.getThenBranch()));
    auto elseTypes = convertTypes(converter, getYielded(op.getElseBranch()));
    if (failed(thenTypes) || failed(elseTypes) ||
        thenTypes->size() != elseTypes->size())
      return refuse(op, "a branch yields a value of "
                        "unknown rank or type");
    SmallVector<Type> types;
    for (auto [x, y] : llvm::zip_equal(*thenTypes, *elseTypes)) {
      types.push_back(joinTypes(x, y));
      if (!types.back())
        return refuse(op, "branches differ in rank");
    }
    Value condition = loadCondition(rewriter, loc, adaptor.getCond());
    auto branch = scf::IfOp::create(rewriter, loc, types, condition,
                                    /*withElseRegion=*/false);
    for (auto [from, to] : {std::pair<Region *, Region *>{
                                &op.getThenBranch(), &branch.getThenRegion()},
                            {&op.getElseBranch(), &branch.getElseRegion()}}) {
      while (!to->empty())
        rewriter.eraseBlock(&to->front());
      rewriter.inlineRegionBefore(*from, *to, to->end());
    }
    return replace(rewriter, op, branch.getResults());
  }
};

//===----------------------------------------------------------------------===//
// Loop
//===----------------------------------------------------------------------===//

/// What a Loop's iterations hand on, in order: state, then scan results.
struct LoopTypes {
  SmallVector<RankedTensorType> state;
  SmallVector<RankedTensorType> elements; ///< Of each scan result.
  /// Whether the room that a scan result takes is not known before the loop, so
  /// that its elements go to a list first.
  SmallVector<bool> isList;
};

struct LoopLowering : OnnxPattern<onnx::LoopOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::LoopOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    const TypeConverter &converter = *getTypeConverter();
    ValueRange initial = adaptor.getVInitial();
    auto yielded = convertTypes(converter, getYielded(op.getBody()));
    if (failed(yielded))
      return refuse(op, "the body yields a value of unknown rank or type");
    FailureOr<LoopTypes> types = getTypes(op, initial, *yielded);
    if (failed(types))
      return refuse(op, "a carried value changes its rank");

    Value zero = createIndex(rewriter, loc, 0);
    Value yes =
        arith::ConstantOp::create(rewriter, loc, rewriter.getBoolAttr(true));
    Value limit;
    if (adaptor.getM()) {
      Value trips = getScalar(rewriter, loc, adaptor.getM());
      limit = arith::IndexCastOp::create(rewriter, loc, rewriter.getIndexType(),
                                         trips);
      limit = arith::MaxSIOp::create(rewriter, loc, limit, zero);
    }
    for (RankedTensorType element : types->elements)
      types->isList.push_back(!limit || !element.hasStaticShape());
    Value condition = adaptor.getCond()
                          ? loadCondition(rewriter, loc, adaptor.getCond())
                          : yes;
    SmallVector<Value> carried = {zero, condition};
    for (auto [value, type] : llvm::zip_equal(initial, types->state))
      carried.push_back(castTo(rewriter, loc, value, type));
    TensorBuilder b(loc, rewriter);
    for (auto [element, isList] :
         llvm::zip_equal(types->elements, types->isList)) {
      if (isList) {
        carried.push_back(createList(b, {}, element.getElementType()));
        continue;
      }
      Sizes sizes = getDeclaredSizes(rewriter, element);
      // Also a body that never runs needs a place that it would write to.
      Value room = rewriter.createOrFold<arith::MaxSIOp>(
          loc, limit, createIndex(rewriter, loc, 1));
      sizes.insert(sizes.begin(), Size(room));
      carried.push_back(
          createEmpty(rewriter, loc, sizes, element.getElementType()));
    }
    FailureOr<scf::WhileOp> loop =
        createLoop(rewriter, op, limit, carried, *types, *yielded);
    if (failed(loop))
      return failure();

    rewriter.setInsertionPointAfter(*loop);
    b.setInsertionPointAfter(*loop);
    int64_t states = types->state.size();
    SmallVector<Value> results(loop->getResults().slice(2, states));
    Value count = loop->getResult(0);
    for (auto [i, element] : llvm::enumerate(types->elements)) {
      if (types->isList[i]) {
        SmallVector<int64_t> shape(element.getShape());
        shape.insert(shape.begin(), ShapedType::kDynamic);
        results.push_back(concatList(b, loop->getResult(2 + states + i), 0,
                                     ListConcat::Scan, element.clone(shape)));
        continue;
      }
      Sizes sizes = getDeclaredSizes(rewriter, element);
      sizes.insert(sizes.begin(), Size(count));
      Sizes offsets(sizes.size(), asSize(rewriter, 0));
      results.push_back(slice(rewriter, loc, loop->getResult(2 + states + i),
                              offsets, sizes));
    }
    return replace(rewriter, op, results);
  }

private:
  static FailureOr<LoopTypes> getTypes(onnx::LoopOp op, ValueRange initial,
                                       ArrayRef<Type> yielded) {
    LoopTypes types;
    Block &body = op.getBody().front();
    if (yielded.size() < initial.size() + 1 ||
        body.getNumArguments() != initial.size() + 2)
      return failure();
    ONNXTypeConverter converter;
    for (auto [i, value] : llvm::enumerate(initial)) {
      RankedTensorType type = joinTypes(value.getType(), yielded[1 + i]);
      Type declared = converter.convertType(body.getArgument(2 + i).getType());
      // An argument declared without a rank says nothing.
      if (type && isa_and_nonnull<RankedTensorType>(declared))
        type = joinTypes(type, declared);
      if (!type)
        return failure();
      types.state.push_back(type);
    }
    for (Type type : yielded.drop_front(1 + initial.size()))
      types.elements.push_back(cast<RankedTensorType>(type));
    return types;
  }

  FailureOr<scf::WhileOp> createLoop(ConversionPatternRewriter &rewriter,
                                     onnx::LoopOp op, Value limit,
                                     ArrayRef<Value> carried,
                                     const LoopTypes &types,
                                     ArrayRef<Type> yielded) const {
    Location loc = op.getLoc();
    SmallVector<Type> carriedTypes = llvm::map_to_vector(
        carried, [](Value value) { return value.getType(); });
    auto loop = scf::WhileOp::create(rewriter, loc, carriedTypes, carried);
    SmallVector<Location> locations(carried.size(), loc);
    OpBuilder::InsertionGuard guard(rewriter);
    Block *before =
        rewriter.createBlock(&loop.getBefore(), {}, carriedTypes, locations);
    Value go = before->getArgument(1);
    if (limit) {
      Value more =
          arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::slt,
                                before->getArgument(0), limit);
      go = arith::AndIOp::create(rewriter, loc, go, more);
    }
    scf::ConditionOp::create(rewriter, loc, go, before->getArguments());

    Block *after =
        rewriter.createBlock(&loop.getAfter(), {}, carriedTypes, locations);
    Value index = after->getArgument(0);
    Type boolean = rewriter.getI1Type();
    Value number =
        arith::IndexCastOp::create(rewriter, loc, rewriter.getI64Type(), index);
    Value flag = storeScalar(rewriter, loc, after->getArgument(1), boolean);
    SmallVector<Value> arguments = {
        wrapScalar(rewriter, loc, number, op.getBody().front().getArgument(0)),
        wrapScalar(rewriter, loc, flag, op.getBody().front().getArgument(1))};
    int64_t states = types.state.size();
    llvm::append_range(arguments, after->getArguments().slice(2, states));
    SmallVector<Type> wanted = {yielded.front()};
    llvm::append_range(wanted, types.state);
    llvm::append_range(wanted, types.elements);
    FailureOr<ValueRange> values = inlineGraph(
        rewriter, *getTypeConverter(), loc, op.getBody(), arguments, wanted);
    if (failed(values))
      return failure();

    SmallVector<Value> next = {
        arith::AddIOp::create(rewriter, loc, index,
                              createIndex(rewriter, loc, 1)),
        loadCondition(rewriter, loc, values->front())};
    llvm::append_range(next, values->slice(1, states));
    TensorBuilder b(loc, rewriter);
    for (auto [i, element] : llvm::enumerate(types.elements)) {
      Value made = (*values)[1 + states + i];
      Value before = after->getArgument(2 + states + i);
      if (types.isList[i]) {
        next.push_back(insertIntoList(b, before, made));
        continue;
      }
      Sizes sizes = getDeclaredSizes(rewriter, element);
      sizes.insert(sizes.begin(), asSize(rewriter, 1));
      Sizes offsets(sizes.size(), asSize(rewriter, 0));
      offsets.front() = Size(index);
      next.push_back(insertSlice(rewriter, loc, made, before, offsets, sizes));
    }
    scf::YieldOp::create(rewriter, loc, next);
    return loop;
  }

  /// A tensor of one element, of the rank that the body's argument has.
  static Value wrapScalar(OpBuilder &b, Location loc, Value scalar,
                          Value argument) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    SmallVector<int64_t> shape(type ? type.getRank() : 0, 1);
    return tensor::FromElementsOp::create(
        b, loc, RankedTensorType::get(shape, scalar.getType()), scalar);
  }
};

//===----------------------------------------------------------------------===//
// Scan
//===----------------------------------------------------------------------===//

struct ScanLowering : OnnxPattern<onnx::ScanOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::ScanOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    ValueRange operands = adaptor.getOperands();
    int64_t inputs = op.getNumScanInputs();
    int64_t states = operands.size() - inputs;
    auto yielded = convertTypes(*getTypeConverter(), getYielded(op.getBody()));
    if (failed(yielded) || inputs < 1 || states < 0 ||
        int64_t(yielded->size()) < states)
      return refuse(op, "the body yields a value of unknown rank or type");
    int64_t outputs = yielded->size() - states;
    ValueRange scanned = operands.drop_front(states);
    auto listOf = [&](StringRef name, int64_t count) {
      SmallVector<int64_t> list(count, 0);
      if (auto attr = op->getAttrOfType<DenseI64ArrayAttr>(name))
        for (auto [i, v] : llvm::enumerate(attr.asArrayRef().take_front(count)))
          list[i] = v;
      return list;
    };
    SmallVector<int64_t> inAxes = listOf("scan_input_axes", inputs);
    SmallVector<int64_t> inBack = listOf("scan_input_directions", inputs);
    SmallVector<int64_t> outAxes = listOf("scan_output_axes", outputs);
    SmallVector<int64_t> outBack = listOf("scan_output_directions", outputs);
    for (auto [value, axis] : llvm::zip_equal(scanned, inAxes)) {
      auto normal = normalizeAxis(
          axis, cast<RankedTensorType>(value.getType()).getRank());
      if (failed(normal))
        return refuse(op, "scan axis out of range");
      axis = *normal;
    }
    Size length = getSize(rewriter, loc, scanned.front(), inAxes.front());
    for (auto [value, axis] : llvm::zip_equal(scanned, inAxes))
      checkSameSize(rewriter, loc, getSize(rewriter, loc, value, axis), length,
                    "the scanned inputs differ in length");
    SmallVector<Value> carried;
    SmallVector<Type> wanted;
    for (int64_t i = 0; i < states; ++i) {
      RankedTensorType type = joinTypes(operands[i].getType(), (*yielded)[i]);
      if (!type)
        return refuse(op, "a state changes its rank");
      carried.push_back(castTo(rewriter, loc, operands[i], type));
      wanted.push_back(type);
    }
    for (int64_t i = 0; i < outputs; ++i) {
      auto element = cast<RankedTensorType>((*yielded)[states + i]);
      auto axis = normalizeAxis(outAxes[i], element.getRank() + 1);
      if (failed(axis))
        return refuse(op, "scan axis out of range");
      outAxes[i] = *axis;
      if (!element.hasStaticShape()) {
        // Whose size is known when it is made: to a list first.
        TensorBuilder b(loc, rewriter);
        carried.push_back(createList(b, {}, element.getElementType()));
        wanted.push_back(element);
        continue;
      }
      Sizes sizes = getDeclaredSizes(rewriter, element);
      sizes.insert(sizes.begin() + *axis, length);
      carried.push_back(
          createEmpty(rewriter, loc, sizes, element.getElementType()));
      wanted.push_back(element);
    }

    auto loop = scf::ForOp::create(rewriter, loc, createIndex(rewriter, loc, 0),
                                   asIndex(rewriter, loc, length),
                                   createIndex(rewriter, loc, 1), carried);
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(loop.getBody());
    Value index = loop.getInductionVar();
    Value last =
        arith::SubIOp::create(rewriter, loc, asIndex(rewriter, loc, length),
                              createIndex(rewriter, loc, 1));
    Value backwards = arith::SubIOp::create(rewriter, loc, last, index);
    SmallVector<Value> arguments(loop.getRegionIterArgs().take_front(states));
    for (int64_t i = 0; i < inputs; ++i)
      arguments.push_back(takeAt(rewriter, loc, scanned[i], inAxes[i],
                                 inBack[i] ? backwards : index));
    FailureOr<ValueRange> values = inlineGraph(
        rewriter, *getTypeConverter(), loc, op.getBody(), arguments, wanted);
    if (failed(values))
      return failure();
    SmallVector<Value> next(values->take_front(states));
    for (int64_t i = 0; i < outputs; ++i) {
      Value made = (*values)[states + i];
      Value before = loop.getRegionIterArgs()[states + i];
      if (isOpen(wanted[states + i]))
        next.push_back(addToList(rewriter, loc, before, made, outBack[i]));
      else
        next.push_back(putAt(rewriter, loc, made, before, outAxes[i],
                             outBack[i] ? backwards : index));
    }
    scf::YieldOp::create(rewriter, loc, next);
    // The results may need casts, which are not the body's.
    rewriter.setInsertionPointAfter(loop);
    TensorBuilder b(loc, rewriter);
    SmallVector<Value> results(loop.getResults());
    for (int64_t i = 0; i < outputs; ++i) {
      auto element = cast<RankedTensorType>(wanted[states + i]);
      if (!isOpen(element))
        continue;
      SmallVector<int64_t> shape(element.getShape());
      shape.insert(shape.begin() + outAxes[i], ShapedType::kDynamic);
      results[states + i] = concatList(b, results[states + i], outAxes[i],
                                       ListConcat::Scan, element.clone(shape));
    }
    return replace(rewriter, op, results);
  }

private:
  static bool isOpen(Type element) {
    return !cast<RankedTensorType>(element).hasStaticShape();
  }

  static Value addToList(OpBuilder &builder, Location loc, Value list,
                         Value tensor, bool atFront) {
    TensorBuilder b(loc, builder);
    Value front = atFront ? b.zeros({}, b.getI64Type()) : Value();
    return insertIntoList(b, list, tensor, front);
  }

  /// `tensor[..., index, ...]` along `axis`, which disappears.
  static Value takeAt(OpBuilder &b, Location loc, Value tensor, int64_t axis,
                      Value index) {
    Sizes sizes = getSizes(b, loc, tensor);
    Sizes offsets(sizes.size(), asSize(b, 0));
    sizes[axis] = asSize(b, 1);
    offsets[axis] = index;
    return squeeze(b, loc, slice(b, loc, tensor, offsets, sizes), axis);
  }

  static Value putAt(OpBuilder &b, Location loc, Value part, Value into,
                     int64_t axis, Value index) {
    Sizes sizes = getSizes(b, loc, into);
    Sizes offsets(sizes.size(), asSize(b, 0));
    sizes[axis] = asSize(b, 1);
    offsets[axis] = index;
    return insertSlice(b, loc, part, into, offsets, sizes);
  }
};

} // namespace

void populateControlFlowPatterns(const TypeConverter &converter,
                                 RewritePatternSet &patterns) {
  patterns.add<YieldLowering, IfLowering, LoopLowering, ScanLowering>(
      converter, patterns.getContext());
}

} // namespace sardonyx

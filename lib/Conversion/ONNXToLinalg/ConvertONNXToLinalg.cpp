//===- ConvertONNXToLinalg.cpp - The pass and its structural patterns -----===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support/Patterns.h"
#include "sardonyx/Conversion/ONNXToLinalg.h"
#include "sardonyx/RefusedAttrs.h"

#include "StringsAndSequences/Sequences.h"
#include "StringsAndSequences/Strings.h"
#include "Support/Checks.h"
#include "Support/Common.h"
#include "Support/DataMovement.h"
#include "Support/Lowering.h"
#include "Support/PackedConstants.h"

#include "dialects/ONNX/ONNX.h"
#include "dialects/SDX/SDX.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Func/Transforms/FuncConversions.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "sardonyx/Conversion/Passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

#include <algorithm>
#include <map>

namespace sardonyx {
#define GEN_PASS_DEF_CONVERTONNXTOLINALG
#include "sardonyx/Conversion/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;

namespace sardonyx {

//===----------------------------------------------------------------------===//
// Structural patterns
//===----------------------------------------------------------------------===//

/// The same bytes as elements of the converted type; null when impossible.
static ElementsAttr convertElements(ElementsAttr value, RankedTensorType type) {
  if (value.getElementType() == type.getElementType())
    return value;
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(value))
    return DenseResourceElementsAttr::get(type, resource.getRawHandle());
  auto dense = dyn_cast<DenseIntOrFPElementsAttr>(value);
  if (!dense)
    return {};
  Type element = value.getElementType();
  if (isa<ComplexType>(element) || element.getIntOrFloatBitWidth() >= 8)
    return dense.bitcast(type.getElementType());
  SmallVector<APInt> bytes;
  auto add = [&](const APInt &bits) { bytes.push_back(bits.zext(8)); };
  if (isa<FloatType>(element)) {
    for (const APFloat &number : dense.getValues<APFloat>())
      add(number.bitcastToAPInt());
  } else {
    for (const APInt &number : dense.getValues<APInt>())
      add(number);
  }
  return DenseElementsAttr::get(type, bytes);
}

namespace {

ElementsAttr convertStrings(Lowering<onnx::ConstantOp> &b, ElementsAttr value,
                            RankedTensorType type) {
  auto dense = dyn_cast<DenseStringElementsAttr>(value);
  if (!dense)
    return {};
  SmallVector<int64_t> handles;
  for (StringRef text : dense.getRawStringData())
    handles.push_back(b.handleOf(text));
  return DenseIntElementsAttr::get(type, handles);
}

/// A byte for each number; signed ones have zeros above their bits.
Value unpack(TensorBuilder &b, const PackedConstant &packed,
             RankedTensorType type) {
  Value bytes = b.elementwise(
      {b.size(type.getNumElements())}, {}, {}, {type.getElementType()},
      [&](TensorBuilder &s, ValueRange) -> SmallVector<Value> {
        Value at = linalg::IndexOp::create(s, 0);
        return {s.convert(packed.extract(s, at), type.getElementType())};
      })[0];
  Sizes sizes;
  for (int64_t size : type.getShape())
    sizes.push_back(b.size(size));
  return b.reshape(bytes, sizes);
}

LogicalResult lowerConstant(Lowering<onnx::ConstantOp> &b) {
  auto value = b.op->getAttrOfType<ElementsAttr>("value");
  if (!value)
    return b.refuse("it has no tensor value");
  auto type = dyn_cast<RankedTensorType>(value.getShapedType());
  Type element = type ? convertElementType(type.getElementType()) : Type();
  if (!element)
    return b.refuse("its element type has no lowering");
  auto converted = RankedTensorType::get(type.getShape(), element);
  if (isPacked(b.op)) {
    std::optional<PackedConstant> packed = createPackedConstant(b, b.op);
    return b.replace(unpack(b, *packed, converted));
  }
  ElementsAttr elements = isStringType(type.getElementType())
                              ? convertStrings(b, value, converted)
                              : convertElements(value, converted);
  if (!elements)
    return b.refuse("its value is not dense");
  auto constant = arith::ConstantOp::create(b, b.getLoc(), converted,
                                            cast<TypedAttr>(elements));
  if (Attribute source = b.op->getAttr("sdx.source"))
    constant->setAttr("sdx.source", source);
  return b.replace(constant.getResult());
}

LogicalResult lowerIdentity(Lowering<onnx::IdentityOp> &b) {
  return b.replace(b.in.getInput());
}

} // namespace

void populateStructuralPatterns(const TypeConverter &converter,
                                RewritePatternSet &patterns) {
  addLowering<onnx::ConstantOp, lowerConstant>(patterns, converter);
  addLowering<onnx::IdentityOp, lowerIdentity>(patterns, converter);
}

void populateONNXToLinalgPatterns(const TypeConverter &converter,
                                  RewritePatternSet &patterns) {
  populateStructuralPatterns(converter, patterns);
  populateShapeArithmeticPatterns(converter, patterns);
  populateElementwisePatterns(converter, patterns);
  populateActivationPatterns(converter, patterns);
  populateCastPatterns(converter, patterns);
  populateReductionPatterns(converter, patterns);
  populateNormalizationPatterns(converter, patterns);
  populateQuantizationPatterns(converter, patterns);
  populateMatMulPatterns(converter, patterns);
  populateMatMulNBitsPatterns(converter, patterns);
  populateIntegerMatMulPatterns(converter, patterns);
  populateEinsumPatterns(converter, patterns);
  populateDetPatterns(converter, patterns);
  populateInversePatterns(converter, patterns);
  populateRotaryPatterns(converter, patterns);
  populateConvPatterns(converter, patterns);
  populateIntegerConvPatterns(converter, patterns);
  populateConvTransposePatterns(converter, patterns);
  populatePoolPatterns(converter, patterns);
  populateMaxPoolPatterns(converter, patterns);
  populateUnpoolPatterns(converter, patterns);
  populateLSTMPatterns(converter, patterns);
  populateGRUPatterns(converter, patterns);
  populateResizePatterns(converter, patterns);
  populateGridSamplePatterns(converter, patterns);
  populateRoiPoolPatterns(converter, patterns);
  populateDeformConvPatterns(converter, patterns);
  populateMelWeightPatterns(converter, patterns);
  populateTensorScatterPatterns(converter, patterns);
  populateNonMaxSuppressionPatterns(converter, patterns);
  populateUniquePatterns(converter, patterns);
  populateFourierPatterns(converter, patterns);
  populateTimeWarpingPatterns(converter, patterns);
  populateOptimizerPatterns(converter, patterns);
  populateTfIdfPatterns(converter, patterns);
  populateImageDecoderPatterns(converter, patterns);
  populateViewPatterns(converter, patterns);
  populateSlicePatterns(converter, patterns);
  populateGatherPatterns(converter, patterns);
  populateScatterPatterns(converter, patterns);
  populateByPlacePatterns(converter, patterns);
  populateSelectPatterns(converter, patterns);
  populateSortingPatterns(converter, patterns);
  populateControlFlowPatterns(converter, patterns);
  populateStringPatterns(converter, patterns);
  populateTokenPatterns(converter, patterns);
  populateSequencePatterns(converter, patterns);
  populateRandomPatterns(converter, patterns);
  populateMLLookupPatterns(converter, patterns);
  populateMLFeaturePatterns(converter, patterns);
  populateMLMapPatterns(converter, patterns);
  populateMLTreePatterns(converter, patterns);
  populateMLSupportVectorPatterns(converter, patterns);
  populateCustomOpPatterns(converter, patterns);
}

/// The lowest benefit of the patterns for each operation.
static llvm::StringMap<unsigned> getBenefits() {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<onnx::ONNXDialect>();
  ONNXTypeConverter converter;
  RewritePatternSet patterns(&context);
  populateONNXToLinalgPatterns(converter, patterns);
  llvm::StringMap<unsigned> benefits;
  for (const std::unique_ptr<RewritePattern> &pattern :
       patterns.getNativePatterns())
    if (std::optional<OperationName> name = pattern->getRootKind()) {
      unsigned benefit = pattern->getBenefit().getBenefit();
      auto [it, isNew] = benefits.try_emplace(name->getStringRef(), benefit);
      it->second = std::min(it->second, benefit);
    }
  return benefits;
}

bool hasLinalgLowering(StringRef operationName, bool ofSpecialCases) {
  static const llvm::StringMap<unsigned> benefits = getBenefits();
  auto found = benefits.find(operationName);
  // A special case leaves the rest to the general lowering.
  return found != benefits.end() &&
         (ofSpecialCases || found->second == kGeneral);
}

namespace {
struct LoweringInterface : onnx::OnnxLoweringDialectInterface {
  using OnnxLoweringDialectInterface::OnnxLoweringDialectInterface;
  bool hasLowering(StringRef operationName) const override {
    return hasLinalgLowering(operationName);
  }
};
} // namespace

void registerONNXToLinalgInterface(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *, onnx::ONNXDialect *dialect) {
    dialect->addInterfaces<LoweringInterface>();
  });
}

//===----------------------------------------------------------------------===//
// Reporting
//===----------------------------------------------------------------------===//

/// The attribute in which an op keeps what the last pattern found wrong with
/// the model.
static constexpr StringLiteral kContradictionAttr = "sdx.contradiction";

LogicalResult refuse(Operation *op, const Twine &why, bool isForGood) {
  op->setAttr(kRefusedAttr, StringAttr::get(op->getContext(), why));
  if (isForGood)
    op->setAttr(kRefusedForGoodAttr, UnitAttr::get(op->getContext()));
  else
    op->removeAttr(kRefusedForGoodAttr);
  return failure();
}

void noteContradiction(Operation *op, StringRef what) {
  if (what.empty())
    op->removeAttr(kContradictionAttr);
  else
    op->setAttr(kContradictionAttr, StringAttr::get(op->getContext(), what));
}

/// The operator as the model's author knows it.
static std::string getOperatorName(Operation *op) {
  auto custom = dyn_cast<onnx::CustomOp>(op);
  if (!custom)
    return op->getName().getStringRef().str();
  return (custom.getOpType() + " of domain '" + custom.getDomain() + "'").str();
}

static bool isUnknown(Type type) {
  auto tensor = dyn_cast<TensorType>(type);
  return isa<onnx::UnknownType>(tensor ? tensor.getElementType() : type);
}

/// Whether it is this op after which types are not known.
static bool hasUnknownMaker(Operation *op) {
  return llvm::any_of(op->getResultTypes(), isUnknown) &&
         llvm::none_of(op->getOperandTypes(), isUnknown);
}

/// Why an op has no lowering.
static std::string describeRefusal(Operation *op) {
  if (auto why = op->getAttrOfType<StringAttr>(kRefusedAttr))
    return why.str();
  if (computesOnComplex(op))
    return "it computes on complex numbers";
  if (isa<onnx::CustomOp>(op)) {
    onnx::CustomImplementation found = onnx::findCustomImplementation(op);
    if (!found.isRegistered)
      return "no such operator is registered";
    if (found.kind == onnx::CustomImplementation::Unknown)
      return "none of the functions registered for it takes these types";
    if (hasUnknownMaker(op))
      return "neither its shape function nor the model tells the types of its "
             "results";
  }
  std::string reason = "there is no lowering for this op";
  llvm::raw_string_ostream os(reason);
  auto types =
      llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes());
  ONNXTypeConverter converter;
  for (Type type : types)
    if (!converter.convertType(type)) {
      os << " on type " << type;
      break;
    }
  return reason;
}

namespace {

/// Operations that have no lowering, each kind and reason once.
class Leftovers {
public:
  void add(Operation *op) {
    auto [it, isNew] = groups.insert(
        {{getOperatorName(op), describeRefusal(op)}, Group{op, 0}});
    ++it->second.count;
  }

  /// Fails with one error for all of them, if there are any.
  LogicalResult report() const {
    if (groups.empty())
      return success();
    std::string list;
    llvm::raw_string_ostream os(list);
    llvm::interleave(
        groups, os,
        [&](const auto &entry) {
          const Group &group = entry.second;
          os << entry.first.first;
          if (std::string name = getNodeName(group.first); !name.empty())
            os << " (node '" << name << "')";
          if (group.count > 1)
            os << " and " << group.count - 1 << " more";
          os << ": " << entry.first.second;
        },
        "; ");
    return emitError(groups.front().second.first->getLoc())
           << "no lowering for: " << list;
  }

private:
  struct Group {
    Operation *first;
    unsigned count;
  };
  using Key = std::pair<std::string, std::string>;
  llvm::MapVector<Key, Group, std::map<Key, unsigned>> groups;
};

} // namespace

static LogicalResult reportRemaining(ModuleOp module) {
  Leftovers leftovers;
  LogicalResult sound = success();
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto what = op->getAttrOfType<StringAttr>(kContradictionAttr))
      sound = op->emitOpError(what.getValue());
    // Terminators of onnx regions remain because their parent does.
    if (isa_and_nonnull<onnx::ONNXDialect>(op->getDialect()) &&
        !op->hasTrait<OpTrait::IsTerminator>())
      leftovers.add(op);
  });
  // Of a wrong model it is no news what else is not supported.
  return failed(sound) ? sound : leftovers.report();
}

/// A sentence for a type at the border of the model that has no lowering.
static LogicalResult checkBorder(func::FuncOp func,
                                 const TypeConverter &converter) {
  auto check = [&](Type type, StringRef kind, unsigned index,
                   StringAttr name) -> LogicalResult {
    if (converter.isLegal(type) || converter.convertType(type))
      return success();
    InFlightDiagnostic error = func.emitError() << kind << " " << index;
    if (name)
      error << " ('" << name.getValue() << "')";
    if (isa<UnrankedTensorType>(type))
      return error << ": a tensor of unknown rank has no lowering";
    return error << ": there is no lowering for type " << type;
  };
  for (auto [index, type] : llvm::enumerate(func.getArgumentTypes()))
    if (failed(check(type, "input", index,
                     func.getArgAttrOfType<StringAttr>(index, "onnx.name"))))
      return failure();
  for (auto [index, type] : llvm::enumerate(func.getResultTypes()))
    if (failed(check(type, "output", index,
                     func.getResultAttrOfType<StringAttr>(index, "onnx.name"))))
      return failure();
  return success();
}

/// Lowerings compute in the types of the results; where one of an operand is
/// not known, none is tried.
static LogicalResult checkResults(ModuleOp module) {
  WalkResult result = module.walk([](Operation *op) {
    if (isa<onnx::CustomOp>(op) || !hasUnknownMaker(op))
      return WalkResult::advance();
    emitError(op->getLoc()) << "no lowering for: " << getOperatorName(op)
                            << " with results of unknown types";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// Operators of foreign domains, and those whose bodies were refused before:
/// what hangs on their results would be told for the fault otherwise.
static LogicalResult checkMakers(ModuleOp module) {
  Leftovers leftovers;
  bool areTypesMissing = false;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    bool isForeign =
        isa<onnx::CustomOp>(op) && (onnx::findCustomImplementation(op).kind ==
                                        onnx::CustomImplementation::Unknown ||
                                    hasUnknownMaker(op));
    if (!isForeign && !op->hasAttr(kRefusedAttr))
      return;
    areTypesMissing |=
        op->hasAttr(kRefusedAttr) ||
        llvm::any_of(op->getResultTypes(), [](Type type) {
          return isUnknown(type) || isa<UnrankedTensorType>(type);
        });
    nameNode(op);
    leftovers.add(op);
  });
  // Where all types are known, more may be wrong than these.
  return areTypesMissing ? leftovers.report() : success();
}

static void recordBorderTypes(func::FuncOp func) {
  for (auto [index, type] : llvm::enumerate(func.getArgumentTypes()))
    if (!func.getArgAttr(index, "onnx.type"))
      func.setArgAttr(index, "onnx.type", TypeAttr::get(type));
  for (auto [index, type] : llvm::enumerate(func.getResultTypes()))
    if (!func.getResultAttr(index, "onnx.type"))
      func.setResultAttr(index, "onnx.type", TypeAttr::get(type));
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Passes and kernels multiply sizes: none is negative, and their product must
/// fit a machine's memory.
static LogicalResult checkExtents(ModuleOp module) {
  constexpr int64_t limit = int64_t(1) << 46;
  auto fits = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    int64_t count = 1;
    if (tensor)
      for (int64_t size : tensor.getShape())
        if (!ShapedType::isDynamic(size) && size != 0 &&
            (size < 0 || size > limit || (count *= size) > limit))
          return false;
    return true;
  };
  WalkResult result = module.walk([&](Operation *op) {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        if (!llvm::all_of(block.getArgumentTypes(), fits))
          return op->emitError("a tensor has an impossible size"),
                 WalkResult::interrupt();
    if (!llvm::all_of(op->getResultTypes(), fits))
      return op->emitError("a tensor has an impossible size"),
             WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

namespace {

struct ConvertONNXToLinalgPass
    : impl::ConvertONNXToLinalgBase<ConvertONNXToLinalgPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    MLIRContext *context = &getContext();
    ONNXTypeConverter converter;
    if (failed(checkMakers(module)))
      return signalPassFailure();
    for (auto func : module.getOps<func::FuncOp>()) {
      if (failed(checkBorder(func, converter)))
        return signalPassFailure();
      recordBorderTypes(func);
    }
    module.walk([](Operation *op) {
      if (isa_and_nonnull<onnx::ONNXDialect>(op->getDialect()))
        nameNode(op);
    });
    if (failed(checkResults(module)))
      return signalPassFailure();
    ConversionTarget target(*context);
    target.addLegalDialect<affine::AffineDialect, arith::ArithDialect,
                           linalg::LinalgDialect, math::MathDialect,
                           scf::SCFDialect, sdx::SDXDialect,
                           tensor::TensorDialect>();
    target.addDynamicallyLegalOp<func::FuncOp>([&](func::FuncOp func) {
      return converter.isSignatureLegal(func.getFunctionType()) &&
             converter.isLegal(&func.getBody());
    });
    target.addDynamicallyLegalOp<func::ReturnOp, func::CallOp>(
        [&](Operation *op) { return converter.isLegal(op); });
    target.markUnknownOpDynamicallyLegal(
        [](Operation *op) -> std::optional<bool> {
          return computesOnComplex(op) ? std::optional(true) : std::nullopt;
        });
    RewritePatternSet patterns(context);
    populateONNXToLinalgPatterns(converter, patterns);
    populateFunctionOpInterfaceTypeConversionPattern<func::FuncOp>(patterns,
                                                                   converter);
    populateReturnOpTypeConversionPattern(patterns, converter);
    populateCallOpTypeConversionPattern(patterns, converter);

    ConversionConfig config;
    config.foldingMode = DialectConversionFoldingMode::Never;
    // Other onnx ops have no stated legality: those that no pattern takes stay,
    // and are then reported together.
    if (failed(applyPartialConversion(module, target, std::move(patterns),
                                      config)) ||
        failed(reportRemaining(module)) || failed(checkExtents(module)))
      return signalPassFailure();
    if (auto strings = converter.literals(context).list(); !strings.empty())
      module->setAttr(sdx::kStringsAttr, ArrayAttr::get(context, strings));
  }
};

} // namespace

} // namespace sardonyx
